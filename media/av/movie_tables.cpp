#include "movie_tables.hpp"

#include "box_headers.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

void held_bytes::read(byte_input& from, std::uint64_t offset, std::uint64_t bytes) {
  constexpr std::uint64_t step = 16 << 20;  // a box may state a larger size than the file has
  if (at(offset).size() >= bytes) return;
  const auto held = at(offset);
  part made{.offset = offset, .bytes = {held.begin(), held.end()}};
  while (made.bytes.size() < bytes) {
    const auto known = made.bytes.size();
    made.bytes.resize(known + static_cast<std::size_t>(std::min(bytes - known, step)));
    const auto count = from.read(std::span(made.bytes).subspan(known), offset + known);
    made.bytes.resize(known + count);
    if (count == 0) break;
  }
  parts_.push_back(std::move(made));
}

void held_bytes::add(std::uint64_t offset, std::span<const std::byte> bytes) {
  parts_.push_back({.offset = offset, .bytes = {bytes.begin(), bytes.end()}});
}

std::span<const std::byte> held_bytes::at(std::uint64_t offset) const noexcept {
  std::span<const std::byte> longest;
  for (const auto& each : parts_) {
    if (offset < each.offset || offset - each.offset >= each.bytes.size()) continue;
    const auto rest = std::span(each.bytes).subspan(static_cast<std::size_t>(offset - each.offset));
    if (rest.size() > longest.size()) longest = rest;
  }
  return longest;
}

static constexpr std::size_t most_box_header = 16;

static std::string_view box_type(std::span<const std::byte> box) noexcept {
  return {reinterpret_cast<const char*>(box.data() + 4), 4};
}

// Iterates over the boxes of a file. Reads 32 KiB at once through a reader.
class file_boxes {
 public:
  file_boxes(byte_input& file, std::span<const std::byte> start)
      : file_(file), cached_(start.begin(), start.end()) {}

  // Advances to the next box. Returns false if there is none.
  bool next() {
    const auto left = file_.size() - at_;
    if (left <= box_.bytes) return false;
    at_ += box_.bytes;
    const auto found = box_start_of(start_of_box(), file_.size() - at_);
    if (!found) return false;
    box_ = *found;
    box_.bytes = std::min(box_.bytes, file_.size() - at_);
    return true;
  }

  std::string_view type() {
    const auto start = start_of_box();  // shorter if the file was truncated meanwhile
    return start.size() < 8 ? std::string_view() : box_type(start);
  }

  // Returns all bytes of the box. Bytes that were read to find it are not read again.
  std::span<const std::byte> read(held_bytes& into) {
    into.add(cached_offset_, cached_);
    into.read(file_, at_, box_.bytes);
    return into.at(at_);
  }

  // The content of a box whose bytes start with `bytes`.
  std::span<const std::byte> content(std::span<const std::byte> bytes) const {
    return bytes.first(std::min<std::size_t>(bytes.size(), box_.bytes))
        .subspan(std::min<std::size_t>(bytes.size(), box_.header_bytes));
  }

 private:
  std::span<const std::byte> start_of_box() {
    const auto left = file_.size() - at_;
    if (at_ < cached_offset_ ||
        at_ - cached_offset_ + std::min<std::uint64_t>(left, most_box_header) > cached_.size()) {
      const std::uint64_t window = file_.is_in_memory() ? most_box_header : 32 << 10;
      cached_.resize(static_cast<std::size_t>(std::min(left, window)));
      cached_.resize(file_.read(cached_, at_));
      cached_offset_ = at_;
    }
    return std::span<const std::byte>(cached_).subspan(
        std::min<std::size_t>(cached_.size(), at_ - cached_offset_));
  }

  byte_input& file_;
  std::vector<std::byte> cached_;  // bytes of the file from cached_offset_ on
  std::uint64_t cached_offset_ = 0;
  std::uint64_t at_ = 0;
  box_start box_;  // the box at at_; has no bytes before the first call
};

std::span<const std::byte> find_movie(byte_input& file, held_bytes& held) {
  for (file_boxes boxes(file, held.at(0)); boxes.next();)
    if (boxes.type() == "moov") return boxes.content(boxes.read(held));
  return {};
}

// Reads a number of a box; 0 after its end.
static std::uint32_t number_at(std::span<const std::byte> content, std::size_t at) noexcept {
  if (content.size() < 4 || at > content.size() - 4) return 0;
  std::uint32_t value = 0;
  for (const auto byte : content.subspan(at, 4))
    value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

static std::uint64_t long_number_at(std::span<const std::byte> content, std::size_t at) noexcept {
  return std::uint64_t{number_at(content, at)} << 32 | number_at(content, at + 4);
}

static bool is_version_1(std::span<const std::byte> content) noexcept {
  return !content.empty() && content[0] == std::byte{1};
}

// A full box that states how many entries of some numbers it has (ISO/IEC 14496-12, 8.6).
struct movie_table {
  std::span<const std::byte> content;
  std::size_t numbers = 1;

  std::size_t size() const noexcept {
    const auto room = content.size() < 8 ? 0 : (content.size() - 8) / (4 * numbers);
    return std::min<std::size_t>(number_at(content, 4), room);
  }
  std::uint32_t at(std::size_t entry, std::size_t number) const noexcept {
    return number_at(content, 8 + 4 * (entry * numbers + number));
  }
};

// The boxes of a track (ISO/IEC 14496-12, 8.3) that determine the number of samples.
struct movie_track {
  std::uint32_t id = 0;
  std::uint32_t time_scale = 0;
  bool is_sound = false;
  std::uint32_t samples = 0;
  std::uint32_t chunks = 0;
  movie_table durations{{}, 2};      // stts: samples, duration of each
  movie_table offsets{{}, 2};        // ctts: samples, from decoding to presentation
  movie_table keys;                  // stss: numbers of samples, from 1 on
  movie_table chunk_samples{{}, 3};  // stsc: first chunk, from 1 on; samples of each
  std::span<const std::byte> edits;  // elst
};

struct movie_boxes {
  std::uint32_t time_scale = 0;
  bool has_fragments = false;
  std::vector<movie_track> tracks;
};

static void read_track_box(movie_track& track, std::string_view type,
                           std::span<const std::byte> content) {
  constexpr std::uint32_t sound = 0x736f756e;  // "soun"
  const std::size_t behind_times = is_version_1(content) ? 20 : 12;
  if (type == "tkhd") track.id = number_at(content, behind_times);
  if (type == "mdhd") track.time_scale = number_at(content, behind_times);
  if (type == "hdlr") track.is_sound = track.is_sound || number_at(content, 8) == sound;
  if (type == "stsz" || type == "stz2")
    track.samples = std::max(track.samples, number_at(content, 8));
  if (type == "stco" || type == "co64")
    track.chunks = std::max(track.chunks, number_at(content, 4));
  if (type == "stts") track.durations.content = content;
  if (type == "ctts") track.offsets.content = content;
  if (type == "stss") track.keys.content = content;
  if (type == "stsc") track.chunk_samples.content = content;
  if (type == "elst") track.edits = content;
}

static void read_movie_boxes(std::span<const std::byte> content, movie_boxes& into, int depth = 0) {
  constexpr std::array<std::string_view, 6> containers{"trak", "edts", "mdia",
                                                       "minf", "dinf", "stbl"};
  constexpr int deepest = 16;
  while (!content.empty() && depth < deepest) {
    const auto box = box_start_of(content, content.size());
    if (!box) return;
    const auto type = box_type(content);
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(box->bytes, content.size()));
    const auto inside = content.first(bytes).subspan(
        static_cast<std::size_t>(std::min<std::uint64_t>(box->header_bytes, bytes)));
    if (type == "mvhd") into.time_scale = number_at(inside, is_version_1(inside) ? 20 : 12);
    if (type == "mvex") into.has_fragments = true;
    if (type == "trak") into.tracks.emplace_back();
    if (std::find(containers.begin(), containers.end(), type) != containers.end())
      read_movie_boxes(inside, into, depth + 1);
    else if (!into.tracks.empty())
      read_track_box(into.tracks.back(), type, inside);
    content = content.subspan(bytes);
  }
}

// An edit with media, in units of the time scales of its movie and its track.
struct movie_edit {
  std::uint64_t duration = 0;
  std::int64_t media_time = 0;
};

static std::size_t edit_bytes(const movie_track& track) noexcept {
  return is_version_1(track.edits) ? 20 : 12;
}

// Counts edits by the size of the box, as FFmpeg does.
static std::size_t count_edits(const movie_track& track) noexcept {
  return track.edits.size() < 8 ? 0 : (track.edits.size() - 8) / edit_bytes(track);
}

// The edits that show media. Empty edits have the time -1 (ISO/IEC 14496-12, 8.6.6).
static std::vector<movie_edit> edits_with_media(const movie_track& track) {
  std::vector<movie_edit> edits;
  const auto count = count_edits(track);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = 8 + i * edit_bytes(track);
    movie_edit edit{number_at(track.edits, at),
                    static_cast<std::int32_t>(number_at(track.edits, at + 4))};
    if (is_version_1(track.edits))
      edit = {long_number_at(track.edits, at),
              static_cast<std::int64_t>(long_number_at(track.edits, at + 8))};
    if (edit.media_time != -1) edits.push_back(edit);
  }
  return edits;
}

static std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// For sound whose samples last one unit, FFmpeg creates packets of parts of chunks, each with 160
// samples or more.
static std::uint64_t count_sound_entries(const movie_track& track) noexcept {
  constexpr std::uint64_t least = 160;
  const auto& table = track.chunk_samples;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint64_t first = table.at(i, 0);
    const std::uint64_t behind =
        i + 1 < table.size() ? table.at(i + 1, 0) : std::uint64_t{track.chunks} + 1;
    const auto parts = (table.at(i, 1) + least - 1) / least;
    if (behind > first) total = add_capped(total, (behind - first) * parts);
  }
  return total;
}

// The samples that FFmpeg copies for an edit: from the key frame before it up to the second one
// after it.
class edit_ranges {
 public:
  edit_ranges(const movie_track& track, std::uint32_t movie_scale)
      : samples_(track.samples),
        scale_(movie_scale == 0 ? 1 : double(track.time_scale) / double(movie_scale)) {
    const auto& durations = track.durations;
    double time = 0;
    std::uint64_t sample = 0;
    for (std::size_t i = 0; i < durations.size(); ++i) {
      runs_.push_back({time, sample, double(durations.at(i, 1))});
      time += double(durations.at(i, 0)) * double(durations.at(i, 1));
      sample += durations.at(i, 0);
    }
    for (std::size_t i = 0; i < track.keys.size(); ++i) keys_.push_back(track.keys.at(i, 0));
    std::sort(keys_.begin(), keys_.end());
    for (std::size_t i = 0; i < track.offsets.size(); ++i) {
      const double offset = static_cast<std::int32_t>(track.offsets.at(i, 1));
      least_offset_ = std::min(least_offset_, offset);
      largest_offset_ = std::max(largest_offset_, offset);
    }
  }

  std::uint64_t count(const movie_edit& edit) const {
    const auto begin = double(edit.media_time);
    const double end = begin + double(edit.duration) * scale_;
    const auto first = sample_at(begin - largest_offset_);
    const auto last = sample_at(end - least_offset_);
    if (keys_.empty()) return std::min(samples_, last - std::min(first, last) + 3);
    const auto start = std::upper_bound(keys_.begin(), keys_.end(), first);
    const auto from = start == keys_.begin() ? 0 : *(start - 1);
    const auto behind = std::upper_bound(keys_.begin(), keys_.end(), last);
    const auto to = keys_.end() - behind > 1 ? *(behind + 1) : samples_;
    return to - std::min(from, to) + 1;
  }

 private:
  struct run {
    double time = 0;
    std::uint64_t sample = 0;
    double duration = 0;
  };

  std::uint64_t sample_at(double time) const {
    const auto behind =
        std::upper_bound(runs_.begin(), runs_.end(), time,
                         [](double sought, const run& each) { return sought < each.time; });
    if (behind == runs_.begin()) return 0;
    const auto& at = *(behind - 1);
    if (at.duration <= 0) return samples_;
    const double sample = double(at.sample) + (time - at.time) / at.duration;
    return static_cast<std::uint64_t>(std::clamp(sample, 0.0, double(samples_)));
  }

  std::uint64_t samples_;
  double scale_;
  std::vector<run> runs_;
  std::vector<std::uint64_t> keys_;
  double least_offset_ = 0;
  double largest_offset_ = 0;
};

// The number of entries that FFmpeg's index of the track will have.
static std::uint64_t count_entries(const movie_track& track, const std::vector<movie_edit>& edits,
                                   std::uint32_t movie_scale) {
  const bool of_units = track.durations.size() == 1 && track.durations.at(0, 1) == 1;
  if (track.is_sound && of_units) return count_sound_entries(track);
  if (edits.size() < 2) return track.samples;
  const edit_ranges ranges(track, movie_scale);
  std::uint64_t total = track.samples;
  for (const auto& each : edits) total = add_capped(total, ranges.count(each));
  return total;
}

static void check_entries(std::uint64_t entries, std::uint64_t file_bytes,
                          const std::string& doing) {
  const auto most = (1 << 16) + file_bytes / 8;
  if (entries > most)
    throw error(
        errc::limit_exceeded, doing,
        fmt::format("its tables list {} samples in a file of {} bytes", entries, file_bytes));
}

movie_tables read_movie_tables(std::span<const std::byte> movie, std::uint64_t file_bytes,
                               const std::string& doing) {
  constexpr std::size_t most_edits = 4096;
  movie_boxes boxes;
  read_movie_boxes(movie, boxes);
  movie_tables tables{.edited = {}, .has_fragments = boxes.has_fragments};
  std::uint64_t entries = 0;
  for (const auto& each : boxes.tracks) {
    const auto count = count_edits(each);
    if (count > most_edits)
      throw error(errc::limit_exceeded, doing,
                  fmt::format("an edit list has {} edits; at most {} are read", count, most_edits));
    const auto edits = edits_with_media(each);
    if (edits.size() > 1) tables.edited.push_back(each.id);
    entries = add_capped(entries, count_entries(each, edits, boxes.time_scale));
  }
  check_entries(entries, file_bytes, doing);
  return tables;
}

// The samples of all runs (trun) of a fragment, whose fields may all have values by default.
static std::uint64_t count_run_samples(std::span<const std::byte> content, int depth = 0) {
  constexpr int deepest = 16;
  std::uint64_t samples = 0;
  while (!content.empty() && depth < deepest) {
    const auto box = box_start_of(content, content.size());
    if (!box) break;
    const auto type = box_type(content);
    const auto bytes = std::min<std::size_t>(box->bytes, content.size());
    const auto inside =
        content.first(bytes).subspan(std::min<std::size_t>(box->header_bytes, bytes));
    if (type == "traf") samples += count_run_samples(inside, depth + 1);
    if (type == "trun") samples += number_at(inside, 4);
    content = content.subspan(bytes);
  }
  return samples;
}

void check_fragments(byte_input& file, const held_bytes& held, const std::string& doing) {
  constexpr std::uint64_t small = 1 << 20;
  if (!file.is_in_memory() && file.size() > small) return;
  std::uint64_t samples = 0;
  for (file_boxes boxes(file, held.at(0)); boxes.next();) {
    if (boxes.type() != "moof") continue;
    held_bytes fragment;
    samples = add_capped(samples, count_run_samples(boxes.content(boxes.read(fragment))));
  }
  check_entries(samples, file.size(), doing);
}

}  // namespace lade::media
