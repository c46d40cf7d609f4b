#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/media/av/video.hpp>
#include <lade/media/picture.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "frame_options.hpp"

#include <memory>
#include <utility>

namespace lade::media {

// The frames of the index that start in a window.
static std::vector<std::int64_t> frames_within(const packet_index& index,
                                               const time_window& window) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < index.size(); ++i)
    if (window.contains(index.time(i))) numbers.push_back(i);
  if (numbers.empty())
    throw error(errc::invalid_data, "load a window of " + index.stream().name(),
                "it has no frames");
  return numbers;
}

// Decodes into a tensor on the calling thread. Returns the number of times that damage was
// tolerated.
static std::uint64_t write_video(const video& from, const std::vector<std::int64_t>& numbers,
                                 const load_video_options& options, const tensor& frames,
                                 const std::stop_token& stop) {
  std::int64_t next = 0;
  selection_statistics counted;
  from.for_each_frame(
      numbers,
      [&](std::int64_t, const frame& decoded) {
        write_frame(decoded, options.image, frames[next++]);
      },
      options.decoding, &counted, stop);
  return from.damaged() + counted.damaged;
}

// Copies of the strings in load_video's options.
struct loading_texts {
  std::string decoder;
  std::string options;
  std::string index_directory;
};

// `texts`: owns the strings of the options.
static task<loaded_video> load_video_of(std::string path, load_video_options options,
                                        std::shared_ptr<const loading_texts> /*texts*/) {
  auto from = co_await io::open_reader(std::move(path));
  const video_options opening{.stream = options.stream,
                              .demuxing = {.damage = options.decoding.damage},
                              .max_pixels = options.decoding.max_pixels,
                              .index_directory = options.index_directory};
  auto opened = co_await video::open(std::move(from), opening);
  const auto numbers = frames_within(opened.index(), options.window);
  opened = co_await opened.fetch(numbers);
  const auto& stream = opened.stream();
  options.image = with_size(options.image, stream.width(), stream.height(), stream.sample_aspect(),
                            exif_orientation_of(stream), stream.name());
  check_picture_options(options.image, "convert frames of " + stream.name());
  const auto one = frame_spec(options.image);
  const tensor_spec spec{one.type, one.shape.prepend(static_cast<std::int64_t>(numbers.size()))};
  const auto memory = co_await allocate(spec.bytes());
  const tensor frames(spec, memory);
  auto& current = co_await this_context_reference();
  co_await continue_on_pool();
  const auto damaged = write_video(opened, numbers, options, frames, current.stop);
  std::vector<rational> times;
  for (const auto number : numbers) times.push_back(opened.index().time(number));
  co_return loaded_video(frames, std::move(times), damaged);
}

task<loaded_video> load_video(std::string path, const load_video_options& options) {
  auto texts = std::make_shared<const loading_texts>(
      loading_texts{std::string(options.decoding.decoder), std::string(options.decoding.options),
                    std::string(options.index_directory)});
  auto kept = options;
  kept.image.field = {};
  kept.decoding.decoder = texts->decoder;
  kept.decoding.options = texts->options;
  kept.index_directory = texts->index_directory;
  return load_video_of(std::move(path), kept, std::move(texts));
}

static task<tensor> load_clip_by(decode_clip decode, std::string path, random draw) {
  auto from = co_await io::open_reader(std::move(path));
  co_return co_await decode.read(std::move(from), draw);
}

task<tensor> load_clip(std::string path, const clip_options& options, random draw) {
  return load_clip_by(decode_clip(options), std::move(path), draw);
}

}  // namespace lade::media
