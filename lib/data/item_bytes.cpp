#include <lade/detail/data/item_bytes.hpp>
#include <lade/error.hpp>

#include <string>

namespace lade::detail {

void refuse_bytes(std::string_view stage, std::string_view option) {
  throw error(errc::invalid_argument, std::string(stage),
              std::string(option) +
                  " is a limit in bytes, but the size of its items or results is unknown: make "
                  "them of a class with a member bytes(), which returns an integer");
}

}  // namespace lade::detail
