// chain: several stages as one.

#pragma once

#include <lade/pipeline.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

template <class... Stages>
class chain_stage {
 public:
  explicit chain_stage(std::tuple<Stages...> stages) : stages_(std::move(stages)) {}

  template <class Pipeline>
  auto attach(const Pipeline& in) const {
    return std::apply([&in](const Stages&... stages) { return (in | ... | stages); }, stages_);
  }

 private:
  std::tuple<Stages...> stages_;
};

// Combines several stages into one, which can be stored in a variable, used in several pipelines,
// and passed to functions:
//
//   auto prepare = lade::chain(lade::map(read), lade::filter(is_large), lade::map(decode));
//   auto images = lade::from(files) | prepare | lade::batch(256);
//
// A stage is any object with a member `attach(pipeline)`, including another chain. The chain owns
// copies of the stages. A chain without stages returns its pipeline unchanged.
template <class... Stages>
chain_stage<std::decay_t<Stages>...> chain(Stages&&... stages) {
  std::tuple<std::decay_t<Stages>...> all(std::forward<Stages>(stages)...);
  return chain_stage<std::decay_t<Stages>...>(std::move(all));
}

}  // namespace lade
