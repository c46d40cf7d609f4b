// image_loader DIRECTORY: turns a directory of images into training batches, shows the speed and
// the bottleneck, and draws a contact sheet of the first batch. The pipeline is in load().

#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include "gpu.hpp"
#include "loader.hpp"
#include "options.hpp"
#include "report.hpp"
#include "skipped.hpp"

#include <string>

static loader describe_program() {
  loader self;
  self.name = "image_loader";
  self.usage = "DIRECTORY";
  self.source = "directory";
  self.one = "image";
  self.many = "images";
  self.file = "image";
  self.files = "images";
  self.about =
      "Turns the JPEG, PNG, WebP, AVIF, GIF, BMP, TIFF and PNM images in a directory and below it "
      "into\n"
      "training batches, as fast as it can, and tells what limited it. An image's label is the\n"
      "name of the directory that it is in.\n";
  self.train = "shuffled; a random part of each image, half of them mirrored";
  self.val = "in the order of the names; the middle of each image";
  self.floats = "f32 [N, 3, H, W], normalised, rather than u8 [N, H, W, 3]";
  self.decode = "decode_image";
  self.decode_batch = "decode_jpegs";
  self.own = {{"--fast", "", "resize JPEGs before their colours are converted", "off",
               set_flag<&options::fast>}};
  return self;
}

static const loader image_loader = describe_program();

static lade::media::image_options image_options(const options& settings) {
  using enum lade::media::image_fit;
  lade::media::image_options result{.width = static_cast<int>(settings.size),
                                    .height = static_cast<int>(settings.size),
                                    .fit = settings.train ? random_crop : centre_crop,
                                    .fast = settings.fast};
  if (settings.floats) {
    result.layout = lade::media::image_layout::chw;
    result.type = lade::element_type::f32;
    result.mean = {0.485F, 0.456F, 0.406F};  // of ImageNet, as most models expect
    result.stddev = {0.229F, 0.224F, 0.225F};
  }
  return result;
}

static void load(const options& settings) {
  const auto image = image_options(settings);
  const auto bad = settings.skip_bad ? lade::on_error::skip : lade::on_error::fail;
  report result(image_loader, settings.contact_sheet, image);
  skipped without(settings.failure_log);
  const auto images =
      find_files(image_loader, settings,
                 "**/*.{jpg,jpeg,png,webp,avif,gif,bmp,tif,tiff,ppm,pgm,pbm}", without);
  lade::runtime runtime(runtime_options(settings));
  print_heading(settings, describe_files(image_loader, images), runtime);

  // clang-format off
  auto order = lade::from(images);
  if (settings.train) order = order | lade::shuffle({.seed = settings.seed});
  const auto files = order
      | lade::repeat(settings.epochs)
      | lade::map(lade::io::read,
                  {.concurrency = settings.read_ahead, .on_error = bad});
  // clang-format on
  const auto batches = settings.device >= 0
                           ? images_by_gpu(files, image, settings, result)
                           : files | lade::batch_into(lade::media::decode_image(image),
                                                      {.size = settings.batch, .on_error = bad});

  run_loader(image_loader, settings, runtime, batches, images.size(), result, without);
}

int main(int argc, char** argv) { return run_program(image_loader, argc, argv, load); }
