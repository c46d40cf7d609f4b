// Every public way into a media file, for files that are damaged: each call returns or throws an
// error of ours.

#pragma once

#include "damaged_files.hpp"
#include "media_files.hpp"
#include "scripted_reader.hpp"

#include <lade/batch.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/encoder.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/media/av/log_mel.hpp>
#include <lade/media/av/muxer.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/resampler.hpp>
#include <lade/media/av/save_image.hpp>
#include <lade/media/av/video.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/sync_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::media {

// 15 times those of the test pictures: a damaged header may state any size.
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 18;

inline decode_options decode_small(damage_policy damage, int threads = 1) {
  return {.threads = threads, .damage = damage, .max_pixels = most_pixels};
}

// A draw that the bytes decide, so that a seed repeats it.
inline lade::random draw_of(const buffer& file) {
  return lade::random(std::hash<std::string_view>{}(file.text()));
}

// The file under a name that the next one takes.
inline std::string write_damaged(const buffer& file) {
  return media_directory.write("damaged", file.text());
}

inline std::shared_ptr<const byte_reader> reader_of(const buffer& file) {
  return std::make_shared<test::scripted_reader>(file);
}

// The frames that are left if damage is tolerated, and how often it was.
inline std::vector<frame> tolerated_frames(const buffer& file, std::string_view name,
                                           stream_kind kind, std::uint64_t* damaged = nullptr) {
  const auto packets = demux(file, name, kind, {}, {.damage = damage_policy::tolerate});
  return decode(packets, decode_small(damage_policy::tolerate), damaged);
}

inline std::size_t decode_tolerantly(const buffer& file, std::string_view name, stream_kind kind,
                                     std::uint64_t& damaged) {
  return tolerated_frames(file, name, kind, &damaged).size();
}

// Packets.

inline task<std::size_t> count_streamed(demuxer& from) {
  std::vector<int> streams;
  for (const auto& each : from.streams()) streams.push_back(each.index());
  std::size_t count = 0;
  auto elements = from.stream(std::move(streams), {.duration = rational(1, 2)});
  while (auto* next = co_await elements.next()) count += next->size();
  co_return count;
}

inline task<std::size_t> count_slowly(std::shared_ptr<const byte_reader> from) {
  auto file = co_await demuxer::open(std::move(from));
  co_return co_await count_streamed(file);
}

inline task<packets> read_window(std::shared_ptr<const byte_reader> from, stream_kind kind,
                                 demux_options options) {
  auto file = co_await demuxer::open(std::move(from), options);
  const time_window window{.begin = rational(1, 2), .end = rational(1)};
  co_return co_await file.read(file.best(kind).index(), window);
}

inline void write_again(const packets& from) {
  auto file = muxer::in_memory({.format = "matroska"});
  const int stream = file.add(from.stream());
  for (const auto& each : from) file.write(stream, each);
  file.finish();
}

inline void use_packets(const packets& from, std::string_view name) {
  succeeds([&] { packets::parse(from.serialise(), name); });
  succeeds([&] { write_again(from); });
  succeeds([&] { filter_packets(from, "null"); });
  const auto codec = from.stream().codec();
  if (codec == "h264" || codec == "hevc")
    succeeds([&] { filter_packets(from, std::string(codec) + "_mp4toannexb"); });
}

inline void use_demuxers(const buffer& file, std::string_view name, stream_kind kind,
                         runtime& runs) {
  for (const auto damage : {damage_policy::refuse, damage_policy::tolerate}) {
    const auto decoding = decode_small(damage);
    succeeds([&] {
      decode(sync_wait(runs, read_window(reader_of(file), kind, {.damage = damage})), decoding);
    });
  }
  succeeds([&] {
    decode(demux(file, name, kind, {.begin = rational(1, 2), .end = 1}),
           decode_small(damage_policy::refuse));
  });
  succeeds(
      [&] { use_packets(demux(file, name, kind, {}, {.damage = damage_policy::tolerate}), name); });
  succeeds([&] {
    demuxer opened(file, std::string(name));
    sync_wait(count_streamed(opened));
  });
  succeeds([&] { sync_wait(runs, count_slowly(reader_of(file))); });
}

// Runs.

// A stage's function, whose packets and frames count to the budget of its run.
struct count_frames {
  stream_kind kind;

  std::size_t operator()(const sample& in) const {
    std::uint64_t damaged = 0;
    return decode_tolerantly(in.data(), in.key(), kind, damaged);
  }
};

inline void use_in_a_run(const buffer& file, std::string_view name, stream_kind kind,
                         runtime& runs) {
  const auto counts = from(std::vector<sample>(1, sample(std::string(name)).with_data(file))) |
                      map(count_frames{kind});
  succeeds([&] {
    for (const auto count : runs.run(counts)) (void)count;
  });
}

// The slots of a batch of two.
template <class Decode>
void use_slots(const buffer& file, std::string_view name, const Decode& decode_into,
               runtime& runs) {
  const auto batches = from(std::vector<sample>(2, sample(std::string(name)).with_data(file))) |
                       batch_into(decode_into, {.size = 2});
  succeeds([&] {
    for (const auto& batch : runs.run(batches)) (void)batch.tensor();
  });
}

// Encoding.

// Sends all frames, and writes the packets to a file in memory.
template <class Encoder>
void encode_all(Encoder encoder, std::span<const frame> frames) {
  auto file = muxer::in_memory({.format = "matroska"});
  const int stream = file.add(encoder.stream());
  for (const auto& each : frames) {
    encoder.send(each);
    file.write_ready(stream, encoder);
  }
  encoder.finish();
  file.write_ready(stream, encoder);
  file.finish();
}

inline void encode_pictures(std::span<const frame> frames) {
  const auto& first = frames.front();
  succeeds([&] {
    encode_all(video_encoder({.encoder = "ffv1",
                              .width = first.width(),
                              .height = first.height(),
                              .frame_rate = 25,
                              .time_base = first.time_base()}),
               frames);
  });
  for (const auto* picture : {&first, &frames.back()})
    for (const char* format : {"jpg", "png", "tiff"})
      succeeds([&] { encode_image(*picture, format); });
  succeeds([&] { save_image(media_directory / "damaged.bmp", first); });
}

inline void encode_samples(std::span<const frame> frames) {
  const auto& first = frames.front();
  for (const char* encoder : {"aac", "flac", "pcm_f32le"})
    succeeds([&] {
      encode_all(audio_encoder({.encoder = encoder,
                                .sample_rate = first.sample_rate(),
                                .channels = first.channels()}),
                 frames);
    });
}

// Audio.

inline audio_options random_window(damage_policy damage) {
  return {.sample_rate = 16'000,
          .channels = 1,
          .random_offset = true,
          .samples = 4'000,
          .damage = damage};
}

inline void use_random_windows(const buffer& file, std::string_view name, runtime& runs) {
  const auto draw = draw_of(file);
  for (const auto damage : {damage_policy::refuse, damage_policy::tolerate}) {
    const decode_audio window(random_window(damage));
    succeeds([&] { window(sample(std::string(name)).with_data(file), draw); });
    succeeds([&] { sync_wait(runs, window.read(reader_of(file), draw)); });
    use_slots(file, name, window, runs);
  }
}

inline void use_spectrogram(const buffer& file, std::string_view name) {
  const decode_audio speech(
      {.sample_rate = 16'000, .channels = 1, .damage = damage_policy::tolerate});
  const log_mel spectrogram;
  succeeds([&] { spectrogram(speech(sample(std::string(name)).with_data(file))); });
}

inline void use_audio(const buffer& file, std::string_view name, runtime& runs) {
  const decode_audio decode_all({.sample_rate = 16'000, .channels = 1});
  succeeds([&] { decode_all(sample(std::string(name)).with_data(file)); });
  const decode_audio part({.offset = 0.3, .duration = 0.4, .damage = damage_policy::tolerate});
  succeeds([&] { sync_wait(runs, part.read(reader_of(file))); });
  succeeds([&] { sync_wait(runs, load_audio(write_damaged(file), {.channels = 2})); });
  use_random_windows(file, name, runs);
  use_spectrogram(file, name);
  succeeds([&] {
    const auto frames = tolerated_frames(file, name, stream_kind::audio);
    succeeds([&] { resample(frames, {.sample_rate = 8'000}); });
    if (!frames.empty()) encode_samples(frames);
  });
}

// Video.

inline task<std::size_t> frames_by_ranges(std::shared_ptr<const byte_reader> from) {
  auto opened = co_await video::open(std::move(from), {.max_pixels = most_pixels});
  const std::vector<std::int64_t> numbers{opened.size() / 2, 0};
  opened = co_await opened.fetch(numbers);
  co_return opened.frames(numbers, {.max_pixels = most_pixels}).size();
}

// Takes frames of a video in each way.
inline void use_frames(const video& opened, const decode_options& decoding) {
  const std::vector<std::int64_t> numbers{opened.size() - 1, 0, opened.size() / 2};
  succeeds([&] {
    for (const auto& each : opened.frames(numbers, decoding)) {
      succeeds([&] { to_tensor(each); });
      succeeds([&] { to_tensor(each, {.width = 16, .height = 16}); });
      succeeds([&] { planes_to_tensor(each); });
    }
  });
  succeeds([&] {
    std::vector<rational> times;
    for (const auto number : numbers) times.push_back(opened.index().time(number));
    opened.frames_at(times, decoding);
  });
}

inline clip_options small_clip(const decode_options& decoding) {
  return {.sampling = {.frames = 4}, .width = 16, .height = 16, .decoding = decoding};
}

inline void use_clips(const buffer& file, std::string_view name, const decode_options& decoding,
                      runtime& runs) {
  const decode_clip clip(small_clip(decoding));
  const auto draw = draw_of(file);
  succeeds([&] { clip(sample(std::string(name)).with_data(file), draw); });
  succeeds([&] { sync_wait(runs, clip.read(reader_of(file), draw)); });
  use_slots(file, name, clip, runs);
}

// The first call keeps an index, with which the second one opens the file.
inline void use_kept_index(const std::string& path, const decode_options& decoding, runtime& runs) {
  const std::string directory = media_directory / "indexes";
  auto clip = small_clip(decoding);
  clip.index_directory = directory;
  for (int i = 0; i < 2; ++i) succeeds([&] { sync_wait(runs, load_clip(path, clip)); });
  std::filesystem::remove_all(directory);
}

inline void use_video(const buffer& file, std::string_view name, runtime& runs) {
  const auto path = write_damaged(file);
  for (const auto damage : {damage_policy::refuse, damage_policy::tolerate}) {
    const auto decoding = decode_small(damage);
    use_clips(file, name, decoding, runs);
    use_kept_index(path, decoding, runs);
    succeeds([&] {
      sync_wait(runs,
                load_video(path, {.image = {.width = 16, .height = 16}, .decoding = decoding}));
    });
    succeeds([&] {
      const video_options how{.demuxing = {.damage = damage}, .max_pixels = most_pixels};
      const video opened(file, std::string(name), how);
      use_frames(opened, decoding);
      packet_index::parse(opened.index().serialise(), name);
    });
    succeeds([&] {
      decode(demux(file, name, stream_kind::video, {}, {.damage = damage}),
             decode_small(damage, 2));
    });
  }
  succeeds([&] { sync_wait(runs, frames_by_ranges(reader_of(file))); });
  succeeds([&] {
    const auto frames = tolerated_frames(file, name, stream_kind::video);
    if (!frames.empty()) encode_pictures(frames);
  });
}

inline task<> use_ranges(std::shared_ptr<const byte_reader> from, packet_index index,
                         decode_options decoding) {
  auto opened = co_await video::open(std::move(from), std::move(index));
  const std::vector<std::int64_t> numbers{opened.size() / 2, 0};
  opened = co_await opened.fetch(numbers);
  opened.frames(numbers, decoding);
}

// A file and an index that may not be its own.
inline void use_with_index(const buffer& file, std::string_view name, const packet_index& index,
                           runtime& runs) {
  for (const auto damage : {damage_policy::refuse, damage_policy::tolerate}) {
    const auto decoding = decode_small(damage);
    succeeds(
        [&] { use_frames(video(file, std::string(name), index, {.damage = damage}), decoding); });
    succeeds([&] { sync_wait(runs, use_ranges(reader_of(file), index, decoding)); });
  }
}

inline void use_everything(const buffer& file, std::string_view name, stream_kind kind,
                           runtime& runs) {
  succeeds([&] { decode(demux(file, name, kind), decode_small(damage_policy::refuse)); });
  use_demuxers(file, name, kind, runs);
  use_in_a_run(file, name, kind, runs);
  if (kind == stream_kind::audio) return use_audio(file, name, runs);
  use_video(file, name, runs);
}

}  // namespace lade::media
