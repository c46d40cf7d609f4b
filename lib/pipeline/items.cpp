#include <lade/detail/pipeline/items.hpp>

#include <algorithm>
#include <any>
#include <utility>

namespace lade::detail {

void hooked_call::enter(std::string item, const item_view& argument) {
  auto& hooks = run_.options().hooks.all();
  inside_.emplace(entered{stage_.name(), std::move(item), {}});
  inside_->locals.reserve(hooks.size());
  for (auto* each : hooks) {
    std::any local;
    each->enter_item({inside_->stage, inside_->item, origin_, attempt_, argument, {}, local});
    inside_->locals.push_back(std::move(local));
  }
}

std::exception_ptr hooked_call::leave_all(std::exception_ptr failure,
                                          const item_view& result) noexcept {
  auto& hooks = run_.options().hooks.all();
  auto left = std::exchange(inside_, std::nullopt);
  for (auto& locals = left->locals; !locals.empty(); locals.pop_back()) {
    auto seen = failure ? item_view() : result;
    try {
      hooks[locals.size() - 1]->leave_item(
          {left->stage, left->item, origin_, attempt_, {}, seen, locals.back()}, failure);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  return failure;
}

void hooked_call::leave_early() noexcept {
  if (auto failure = leave_all(nullptr, {})) run_.end_by(std::move(failure));
}

std::string short_type_name(std::string_view pretty_function, std::string_view otherwise) {
  auto begin = pretty_function.find("F = ");
  auto name = pretty_function.substr(begin == std::string_view::npos ? 0 : begin + 4);
  auto lambda = std::min(name.find("<lambda"), name.find("(lambda"));
  bool unnamed = lambda < name.find_first_of(";]");
  if (begin == std::string_view::npos || unnamed) return std::string(otherwise);
  name = name.substr(0, name.find_first_of(";],<"));
  if (name.starts_with("std::") && name.ends_with("::function")) return std::string(otherwise);
  if (auto colon = name.rfind(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  return std::string(name);
}

}  // namespace lade::detail
