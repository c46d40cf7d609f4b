#include <lade/detail/pipeline/items.hpp>

#include <algorithm>

namespace lade::detail {

std::string short_type_name(std::string_view pretty_function, std::string_view otherwise) {
  auto begin = pretty_function.find("F = ");
  auto name = pretty_function.substr(begin == std::string_view::npos ? 0 : begin + 4);
  auto lambda = std::min(name.find("<lambda"), name.find("(lambda"));
  bool unnamed = lambda < name.find_first_of(";]");
  if (begin == std::string_view::npos || unnamed) return std::string(otherwise);
  name = name.substr(0, name.find_first_of(";],<"));
  if (auto colon = name.rfind(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  return std::string(name);
}

}  // namespace lade::detail
