#include <lade/error.hpp>
#include <lade/media/slot.hpp>

#include <string>

#include <fmt/format.h>

namespace lade::media {

const buffer& encoded_bytes(const sample& in, std::string_view field, std::string_view doing) {
  if (!field.empty()) {
    const auto& found = in.field(field);
    if (found.type() == lade::field::kind::bytes) return found.bytes();
    throw error(
        errc::invalid_argument, doing,
        fmt::format("its field {} holds {} instead of bytes", found.name(), name(found.type())));
  }
  if (!in.has_data())
    throw error(errc::invalid_argument, doing,
                in.fields().empty() ? "the sample has no data: read it first (lade::io::read)"
                                    : "the sample has no data, but fields: say which (field)");
  return in.data();
}

void require_slot_of(const tensor_spec& spec, const tensor& slot, std::string_view doing) {
  if (!slot.where().is_host_accessible())
    throw error(errc::invalid_argument, doing, "the slot is in the memory of a GPU");
  if (slot.spec() != spec || !slot.contiguous())
    throw error(errc::invalid_argument, doing,
                fmt::format("the slot is {}{} instead of contiguous {}{}", name(slot.type()),
                            to_string(slot.shape()), name(spec.type), to_string(spec.shape)));
}

}  // namespace lade::media
