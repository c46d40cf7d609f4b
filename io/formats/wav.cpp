#include "wav_header.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace lade::io {

wav_info parse_wav_info(const buffer& file, std::string_view name) {
  wav_header header(file.size(), name);
  while (header.wants()) header.take(file.bytes().subspan(header.offset()));
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
  while (header.wants()) {
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
