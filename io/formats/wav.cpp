#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/io/wav_header.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

// The frames [first, first + count) of a window.
struct wav_frames {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

static void require_wav_window(bool condition, std::string_view name, const std::string& reason) {
  if (!condition)
    throw error(errc::invalid_argument, "read a window of " + std::string(name), reason);
}

static wav_frames wav_frames_of(const wav_info& info, const wav_options& options,
                                std::string_view name) {
  require_wav_window(options.offset_seconds >= 0, name,
                     "offset_seconds is " + std::to_string(options.offset_seconds));
  require_wav_window(options.duration_seconds >= 0, name,
                     "duration_seconds is " + std::to_string(options.duration_seconds));
  auto first = std::round(options.offset_seconds * info.sample_rate);
  require_wav_window(
      first <= static_cast<double>(info.frames), name,
      fmt::format("offset_seconds is {:f}; it has {:f}", options.offset_seconds, info.seconds()));
  wav_frames frames;
  frames.first = std::min(static_cast<std::uint64_t>(first), info.frames);
  frames.count = info.frames - frames.first;
  auto most = std::round(options.duration_seconds * info.sample_rate);
  if (most < static_cast<double>(frames.count)) frames.count = static_cast<std::uint64_t>(most);
  return frames;
}

static element_type wav_element_of(wav_encoding encoding) noexcept {
  using enum element_type;
  constexpr element_type types[]{u8, i16, i32, i32, f32, f64};
  return types[static_cast<std::size_t>(encoding)];
}

// The spec of the tensor for this many frames.
static tensor_spec wav_spec_of(const wav_info& info, std::uint64_t frames, bool to_f32) {
  return {to_f32 ? element_type::f32 : wav_element_of(info.encoding),
          {static_cast<std::int64_t>(frames), info.channels}};
}

// Whether samples at this address need no copy.
static bool is_usable_wav(const wav_info& info, const std::byte* samples, bool to_f32) noexcept {
  if (info.encoding == wav_encoding::i24) return false;
  if (to_f32 && info.encoding != wav_encoding::f32) return false;
  return reinterpret_cast<std::uintptr_t>(samples) % element_bytes(wav_element_of(info.encoding)) ==
         0;
}

wav_info parse_wav_info(const buffer& file, std::string_view name) {
  wav_header header(file.size(), name);
  while (header.needs_bytes()) header.take(file.bytes().subspan(header.offset()));
  return header.info();
}

tensor parse_wav(const buffer& file, std::string_view name, wav_options options) {
  auto info = parse_wav_info(file, name);
  auto window = wav_frames_of(info, options, name);
  auto frame = wav_frame_bytes(info);
  auto samples = file.slice(info.data_offset + window.first * frame, window.count * frame);
  auto spec = wav_spec_of(info, window.count, options.to_f32);
  if (is_usable_wav(info, samples.data(), options.to_f32)) return tensor(spec, std::move(samples));
  tensor converted(spec, allocate_now(spec.bytes()));
  convert_wav(info.encoding, samples.bytes(), converted);
  return converted;
}

task<wav_info> read_wav_info(std::shared_ptr<const byte_reader> from) {
  constexpr std::uint64_t usual_header = 4096;
  auto size = from->size();
  wav_header header(size, from->name());
  while (header.needs_bytes()) {
    auto bytes = std::min(size - header.offset(), usual_header);
    auto part = co_await from->read_at(header.offset(), static_cast<std::size_t>(bytes));
    header.take(part.bytes());
  }
  co_return header.info();
}

task<tensor> read_wav(std::shared_ptr<const byte_reader> from, wav_options options) {
  auto info = co_await read_wav_info(from);
  auto window = wav_frames_of(info, options, from->name());
  auto frame = wav_frame_bytes(info);
  auto samples =
      co_await from->read_at(info.data_offset + window.first * frame, window.count * frame);
  auto spec = wav_spec_of(info, window.count, options.to_f32);
  if (is_usable_wav(info, samples.data(), options.to_f32))
    co_return tensor(spec, std::move(samples));
  auto memory = co_await allocate(spec.bytes());
  tensor converted(spec, std::move(memory));
  convert_wav(info.encoding, samples.bytes(), converted);
  co_return converted;
}

task<wav_info> read_wav_info(std::string path) {
  auto from = co_await open_reader(std::move(path));
  co_return co_await read_wav_info(std::move(from));
}

// A whole file is read at once.
task<tensor> read_wav(std::string path, wav_options options) {
  std::shared_ptr<const byte_reader> from;
  if (options.offset_seconds == 0 && std::isinf(options.duration_seconds)) {
    auto content = co_await read_file(path);
    from = std::make_shared<const memory_reader>(std::move(content), without_secrets(path));
  } else {
    from = co_await open_reader(std::move(path));
  }
  co_return co_await read_wav(std::move(from), options);
}

sample decode_wav::operator()(sample from) const {
  auto rate = parse_wav_info(from.data(), from.name()).sample_rate;
  auto audio = parse_wav(from.data(), from.name(), options_);
  return std::move(from)
      .without_data()
      .with_field(field("audio", std::move(audio)))
      .with_field(field("sample_rate", rate));
}

}  // namespace lade::io
