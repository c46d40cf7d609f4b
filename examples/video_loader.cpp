// video_loader DIRECTORY: turns a directory of videos into batches of clips for training, shows the
// speed and the bottleneck, and draws a contact sheet of the first batch.
//
// video_loader 'SHARDS': the same of WebDataset shards, "train-{000..127}.tar", whose samples have
// a video. The pipeline is in load().

#include <lade/io/file.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/clip.hpp>

#include "gpu.hpp"
#include "loader.hpp"
#include "options.hpp"
#include "report.hpp"
#include "skipped.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

static loader describe_program() {
  loader self;
  self.name = "video_loader";
  self.usage = "DIRECTORY|SHARDS";
  self.source = "directory or shards";
  self.one = "clip";
  self.many = "clips";
  self.file = "video";
  self.files = "videos";
  self.about =
      "Turns the videos in a directory and below it, or in WebDataset shards\n"
      "('train-{000..127}.tar'), into batches of clips for training, as fast as it can, and tells\n"
      "what limited it. Each video is one clip in an epoch. Its label is the name of the "
      "directory\n"
      "that it is in.\n";
  self.train = "shuffled; a random time and part of each video, half mirrored";
  self.val = "in the order of the names; the middle of each video and of its pictures";
  self.floats = "f32 [N, T, 3, H, W], normalised, rather than u8 [N, T, H, W, 3]";
  self.decode = "decode_clip";
  self.decode_batch = "decode_clips";
  self.defaults.batch = 8;
  self.defaults.read_ahead = 8;
  self.own = {{"--frames", "N", "frames of a clip", fmt::to_string(self.defaults.frames),
               set_number<&options::frames, 1U, 1'024U>},
              {"--fps", "R", "frames of a clip per second of its video", "each one of the video",
               set_number<&options::fps, 0.001, 1000.0>}};
  return self;
}

static const loader video_loader = describe_program();

static lade::media::clip_options clip_options(const options& settings) {
  using enum lade::media::clip_position;
  using enum lade::media::image_fit;
  lade::media::clip_options result{
      .sampling = {.frames = static_cast<int>(settings.frames),
                   .position = settings.train ? random : centre,
                   .fps = lade::media::rational::nearest(settings.fps)},
      .width = static_cast<int>(settings.size),
      .height = static_cast<int>(settings.size),
      .fit = settings.train ? random_crop : centre_crop};
  if (settings.floats) {
    result.layout = lade::media::clip_layout::tchw;
    result.type = lade::element_type::f32;
    result.mean = {0.485F, 0.456F, 0.406F};  // of ImageNet, as most models expect
    result.stddev = {0.229F, 0.224F, 0.225F};
  }
  return result;
}

// How the contact sheet turns elements of a clip back into pixels.
static lade::media::image_options picture_options(const lade::media::clip_options& clip) {
  return {.width = clip.width, .height = clip.height, .mean = clip.mean, .stddev = clip.stddev};
}

static lade::on_error on_bad(const options& settings) {
  return settings.skip_bad ? lade::on_error::skip : lade::on_error::fail;
}

// The videos of shards, whose number is not known before they have been read.
static lade::pipeline<lade::sample> videos_of(const lade::io::shards& shards,
                                              const options& settings) {
  constexpr std::string_view formats = "mp4,m4v,mov,mkv,webm,avi,ts,mpg,mpeg,wmv,flv";
  auto videos = lade::io::from_shards(shards, {.shuffle = settings.train,
                                               .seed = settings.seed,
                                               .concurrency = 2,
                                               .buffer = settings.read_ahead,
                                               .on_error = on_bad(settings),
                                               .read = {.fields = formats, .data = formats}});
  if (settings.train) videos = videos | lade::shuffle({.seed = settings.seed, .window = 64});
  return videos | lade::repeat(settings.epochs);
}

static lade::pipeline<lade::sample> videos_of(const std::vector<lade::sample>& files,
                                              const options& settings) {
  auto order = lade::from(files);
  if (settings.train) order = order | lade::shuffle({.seed = settings.seed});
  return order | lade::repeat(settings.epochs) |
         lade::map(lade::io::read,
                   {.concurrency = settings.read_ahead, .on_error = on_bad(settings)});
}

// `files`: how many there are; 0 if unknown.
static void load(const options& settings, const lade::pipeline<lade::sample>& videos,
                 const std::string& heading, std::size_t files, skipped& without) {
  const auto clip = clip_options(settings);
  report result(video_loader, settings.contact_sheet, picture_options(clip));
  lade::runtime runtime(runtime_options(settings));
  print_heading(settings, heading, runtime);
  const auto batches =
      settings.device >= 0
          ? clips_by_gpu(videos, clip, settings, result)
          : videos | lade::batch_into(lade::media::decode_clip(clip),
                                      {.size = settings.batch, .on_error = on_bad(settings)});
  run_loader(video_loader, settings, runtime, batches, files, result, without);
}

static void load(const options& settings) {
  skipped without(settings.failure_log, "video", "videos");
  if (settings.source.ends_with(".tar")) {
    const lade::io::shards shards(settings.source);
    load(settings, videos_of(shards, settings), count_of(shards.names().size(), "shard", "shards"),
         0, without);
  } else {
    const auto files = find_files(video_loader, settings,
                                  "**/*.{mp4,m4v,mov,mkv,webm,avi,ts,mpg,mpeg,wmv,flv}", without);
    load(settings, videos_of(files, settings), describe_files(video_loader, files), files.size(),
         without);
  }
}

int main(int argc, char** argv) { return run_program(video_loader, argc, argv, load); }
