#include "avif_items.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lade::media {

// Reads big-endian numbers of any number of bytes, one after another.
class avif_numbers {
 public:
  explicit avif_numbers(support::byte_view bytes) : bytes_(bytes) {}

  std::uint64_t next(std::size_t bytes) noexcept {
    const auto value = bytes_.big(at_, bytes);
    at_ += bytes;
    return value;
  }
  bool at_end() const noexcept { return at_ >= bytes_.size(); }

 private:
  support::byte_view bytes_;
  std::size_t at_ = 0;
};

struct avif_box {
  std::string_view type;
  support::byte_view contents;
};

// Removes the first of `boxes` and returns it. Returns an empty box at the end, or if the boxes are
// damaged.
static avif_box next_avif_box(support::byte_view& boxes) noexcept {
  auto size = boxes.big(0, 4);
  const std::size_t header = size == 1 ? 16 : 8;
  if (size == 1) size = boxes.big(8, 8);
  if (size == 0) size = boxes.size();  // the box extends to the end
  if (size < header || !boxes.holds(0, size)) return boxes = {}, avif_box{};
  const avif_box box{boxes.text().substr(4, 4), boxes.part(header, size - header)};
  boxes = boxes.from(size);
  return box;
}

static support::byte_view find_avif_box(support::byte_view boxes, std::string_view type) noexcept {
  while (!boxes.empty())
    if (const auto box = next_avif_box(boxes); box.type == type) return box.contents;
  return {};
}

// The sorted identifiers of the items of type "av01", from the contents of a box "iinf".
static std::vector<std::uint64_t> av1_items(support::byte_view information) {
  std::vector<std::uint64_t> items;
  auto boxes = information.from(information[0] == 0 ? 6 : 8);
  while (!boxes.empty()) {
    const auto entry = next_avif_box(boxes).contents;
    const std::size_t bytes = entry[0] == 2 ? 2 : 4;
    if (entry.from(4 + bytes + 2).begins("av01")) items.push_back(entry.big(4, bytes));
  }
  std::ranges::sort(items);
  return items;
}

bool avif_has_tracks(support::byte_view file) noexcept {
  return !find_avif_box(file, "moov").empty();
}

// The sizes of the numbers in a box "iloc", in bytes.
struct avif_lengths {
  std::size_t item = 0;
  std::size_t offset = 0;
  std::size_t length = 0;
  std::size_t base = 0;
};

static avif_lengths next_lengths(avif_numbers& location, std::uint64_t version) noexcept {
  const auto four = location.next(2);
  return {.item = version < 2 ? 2U : 4U,
          .offset = four >> 12,
          .length = four >> 8 & 15,
          .base = four >> 4 & 15};
}

// Adds the extents of one item. If an extent passes the end of the file, its first part is added,
// because libavif may read that part. Extents without a length are empty.
static void add_extents(avif_numbers& location, const avif_lengths& bytes,
                        support::byte_view source, av1_sizes& sizes) noexcept {
  const auto base = location.next(bytes.base);
  auto left = location.next(2);
  for (; bytes.length > 0 && left > 0 && !location.at_end(); --left) {
    const auto offset = base + location.next(bytes.offset);
    const auto rest = source.from(offset);
    sizes.add(rest.part(0, std::min<std::uint64_t>(location.next(bytes.length), rest.size())));
  }
  sizes.end_sample();
}

void add_avif_items(support::byte_view file, av1_sizes& sizes) {
  const auto meta = find_avif_box(file, "meta").from(4);
  const auto stored = find_avif_box(meta, "idat");
  const auto items = av1_items(find_avif_box(meta, "iinf"));
  avif_numbers location(find_avif_box(meta, "iloc"));
  const auto version = location.next(4) >> 24;
  const auto bytes = next_lengths(location, version);
  for (auto left = location.next(bytes.item); left > 0 && !location.at_end(); --left) {
    const bool is_av1 = std::ranges::binary_search(items, location.next(bytes.item));
    const bool is_stored = version > 0 && (location.next(2) & 15) == 1;  // construction_method
    location.next(2);                                                    // data_reference_index
    add_extents(location, bytes, !is_av1 ? support::byte_view() : is_stored ? stored : file, sizes);
  }
}

static bool locates_without_bytes(support::byte_view meta) noexcept {
  avif_numbers location(find_avif_box(meta.from(4), "iloc"));
  const auto version = location.next(4) >> 24;
  const auto bytes = next_lengths(location, version);
  return bytes.offset + bytes.length == 0 && location.next(bytes.item) > 0;
}

static bool any_locates_without_bytes(support::byte_view boxes) noexcept {
  while (!boxes.empty())
    if (const auto box = next_avif_box(boxes);
        box.type == "meta" && locates_without_bytes(box.contents))
      return true;
  return false;
}

// A track has its own box "meta".
bool avif_has_empty_extents(support::byte_view file) noexcept {
  if (any_locates_without_bytes(file)) return true;
  for (auto boxes = find_avif_box(file, "moov"); !boxes.empty();)
    if (const auto box = next_avif_box(boxes);
        box.type == "trak" && any_locates_without_bytes(box.contents))
      return true;
  return false;
}

// The number of entries in the boxes "stco" or "co64", and in "stsc".
struct avif_chunks {
  std::uint64_t offsets = 0;
  std::uint64_t counts = 0;
};

// `path`: the types of the boxes around the lists, outermost first.
static void add_chunks(support::byte_view boxes, std::span<const std::string_view> path,
                       avif_chunks& chunks) noexcept {
  while (!boxes.empty()) {
    const auto [type, contents] = next_avif_box(boxes);
    if (path.empty()) {
      if (type == "stco") chunks.offsets += contents.size() / 4;
      if (type == "co64") chunks.offsets += contents.size() / 8;
      if (type == "stsc") chunks.counts += contents.size() / 12;
    } else if (type == path.front()) {
      add_chunks(contents, path.subspan(1), chunks);
    }
  }
}

bool avif_has_too_many_chunks(support::byte_view file) noexcept {
  static constexpr std::string_view path[] = {"moov", "trak", "mdia", "minf", "stbl"};
  constexpr std::uint64_t most_steps = std::uint64_t{1} << 28;
  avif_chunks chunks;
  add_chunks(file, path, chunks);
  return chunks.counts > 0 && chunks.offsets > most_steps / chunks.counts;
}

}  // namespace lade::media
