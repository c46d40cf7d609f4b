#include <lade/detail/common/counted.hpp>

namespace lade::detail {

// The list of objects that this thread still has to delete; null unless it is deleting one.
static constinit thread_local const counted** to_delete = nullptr;

void counted::delete_chain() const noexcept {
  const auto* object = this;
  if (to_delete) {
    object->next_ = std::exchange(*to_delete, object);
    return;
  }
  to_delete = &object;
  while (object) {
    auto* first = std::exchange(object, object->next_);
    delete first;
  }
  to_delete = nullptr;
}

}  // namespace lade::detail
