// lade doing what video_bare does, with the same options. Clips are decoded on one thread or on
// several, all else on one.

#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/video.hpp>
#include <lade/runtime.hpp>

#include <memory>
#include <string>
#include <vector>

#include "media.hpp"

namespace {

namespace media = lade::media;

struct settings {
  std::string file;
  std::string pick;
  std::string dump;
  std::size_t items;
  std::size_t threads;
};

// The file of an item, which the floor reads anew for each one, too.
lade::buffer load(const settings& with) { return bench::load<lade::buffer>(with.file); }

std::size_t decode_all(const lade::buffer& file, const std::string& name) {
  const auto packets = media::demux(file, name, media::stream_kind::video);
  media::decoder by(packets.stream());
  std::size_t frames = 0;
  auto receive_all = [&] {
    while (by.receive()) ++frames;
  };
  for (const auto& packet : packets) {
    by.send(packet);
    receive_all();
  }
  by.finish();
  receive_all();
  return frames;
}

bench::report decode(const settings& with) {
  std::size_t frames = 0;
  auto taken = bench::time_items(with.items,
                                 [&](std::size_t) { frames = decode_all(load(with), with.file); });
  return bench::items_report("video_bench", with.items, frames, taken);
}

std::vector<std::int64_t> numbers_of(const settings& with, std::int64_t frames, std::size_t clip) {
  auto picked = bench::picked(with.pick, static_cast<std::size_t>(frames), clip);
  return {picked.begin(), picked.end()};
}

lade::tensor clip_tensor() {
  constexpr std::int64_t side = bench::clip_side;
  return {lade::element_type::u8, {bench::clip_frames, side, side, 3}};
}

void write_frames(const media::video& from, const std::vector<std::int64_t>& numbers,
                  const lade::tensor& clip) {
  std::int64_t i = 0;
  from.for_each_frame(numbers, [&](std::int64_t, const media::frame& frame) {
    media::write_frame(frame, {}, clip[i++]);
  });
}

bench::report clips(const settings& with) {
  std::vector<lade::tensor> clips;  // one of each thread
  for (std::size_t i = 0; i < with.threads; ++i) clips.push_back(clip_tensor());
  auto decode = [&](std::size_t i, std::size_t thread) {
    const media::video video(load(with), with.file);
    write_frames(video, numbers_of(with, video.size(), i), clips[thread]);
  };
  auto taken = bench::time_items(with.items, with.threads, decode);
  if (!with.dump.empty()) decode(0, 0);
  bench::dump(with.dump, clips[0].bytes(), bench::clip_bytes);
  return bench::items_report("video_bench", with.items, bench::clip_frames, taken)
      .add("threads", with.threads);
}

bench::report convert(const settings& with) {
  const media::video video(load(with), with.file);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < bench::clip_frames; ++i)
    numbers.push_back(static_cast<std::int64_t>(i));
  const auto frames = video.frames(numbers);
  auto clip = clip_tensor();
  auto taken = bench::time_items(with.items, [&](std::size_t i) {
    media::write_frame(frames[i % frames.size()], {}, clip[0]);
  });
  return bench::items_report("video_bench", with.items, 1, taken);
}

// One clip of a video on a web server; the server counts the bytes.
bench::report remote(const settings& with) {
  lade::runtime runtime({.threads = 1});
  const auto from = lade::sync_wait(runtime, lade::io::open_reader(with.file));
  auto video = lade::sync_wait(runtime, media::video::open(from));
  const auto numbers = numbers_of(with, video.size(), 0);
  video = lade::sync_wait(runtime, video.fetch(numbers));
  write_frames(video, numbers, clip_tensor());
  bench::report line("video_bench");
  line.add("item_frames", bench::clip_frames);
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: video.");
  settings with;
  auto what = options.choice("what", "decode|clip|convert|remote",
                             "all frames of a file; 16 of them to 224x224 RGB; frames in memory "
                             "to 224x224 RGB; a clip of a video on a web server");
  with.file = options.text("file", "build/media/h264-720p.mp4", "the video");
  with.pick = options.choice("pick", "even|contiguous", "which frames of the video a clip has");
  with.items = options.number("items", 1, "how many files, clips or frames");
  with.threads = options.number("threads", 1, "that decode clips");
  with.dump = options.text("dump", "", "file to write the first clip to");
  options.done();
  auto* run = what == "decode"    ? decode
              : what == "clip"    ? clips
              : what == "convert" ? convert
                                  : remote;
  run(with).add("what", what).print();
}
