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

// Several stages as one, to be given a name, used in several pipelines, and passed to functions:
//
//   auto prepare = lade::chain(lade::map(read), lade::filter(is_large), lade::map(decode));
//   auto images = lade::from(files) | prepare | lade::batch(256);
//
// A stage is whatever has a member `attach(pipeline)`, so also another chain. Items pass through a
// chain of no stages as they are.
template <class... Stages>
chain_stage<std::decay_t<Stages>...> chain(Stages&&... stages) {
  std::tuple<std::decay_t<Stages>...> all(std::forward<Stages>(stages)...);
  return chain_stage<std::decay_t<Stages>...>(std::move(all));
}

}  // namespace lade
