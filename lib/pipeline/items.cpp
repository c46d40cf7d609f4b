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

static bool is_one_of(char each, std::string_view characters) {
  return characters.find(each) != std::string_view::npos;
}

// The last component of the name at the beginning of a text. The name ends with the text, or before
// a
// ';', ',' or ']' outside of brackets. The other components may be functions with parameters:
// "train(int, char**)::decode".
static std::string_view last_component(std::string_view text) {
  std::size_t depth = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const char each = text[end];
    if (depth == 0 && is_one_of(each, ";,]")) break;
    if (is_one_of(each, "(<[{")) ++depth;
    if (is_one_of(each, ")>]}") && depth > 0) --depth;
    if (each == ':' && depth == 0) begin = end + 1;
  }
  return text.substr(begin, end - begin);
}

std::string short_type_name(std::string_view pretty_function, std::string_view otherwise) {
  auto begin = pretty_function.find("F = ");
  if (begin == std::string_view::npos) return std::string(otherwise);
  const auto type = pretty_function.substr(begin + 4);
  const auto component = last_component(type);
  const bool unnamed = component.find("<lambda") != std::string_view::npos ||
                       component.find("(lambda") != std::string_view::npos;
  const auto name = component.substr(0, component.find('<'));
  const bool is_wrapper = type.starts_with("std::") && name == "function";
  return std::string(unnamed || is_wrapper ? otherwise : name);
}

}  // namespace lade::detail
