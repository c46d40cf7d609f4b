// image_loader DIRECTORY: turns a directory of images into training batches, shows how fast that
// goes and what limits it, and draws a picture of the first batch. The pipeline is in load().

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

static lade::media::image_options image_options(const options& wanted) {
  using enum lade::media::image_fit;
  lade::media::image_options result{.width = static_cast<int>(wanted.size),
                                    .height = static_cast<int>(wanted.size),
                                    .fit = wanted.train ? random_crop : centre_crop,
                                    .fast = wanted.fast};
  if (wanted.floats) {
    result.layout = lade::media::image_layout::chw;
    result.type = lade::element_type::f32;
    result.mean = {0.485F, 0.456F, 0.406F};  // of ImageNet, as most models expect
    result.stddev = {0.229F, 0.224F, 0.225F};
  }
  return result;
}

static void load(const options& wanted) {
  const auto image = image_options(wanted);
  const auto bad = wanted.skip_bad ? lade::on_error::skip : lade::on_error::fail;
  report result(image_loader, wanted.contact_sheet, image);
  skipped without(wanted.failure_log);
  const auto images = find_files(
      image_loader, wanted, "**/*.{jpg,jpeg,png,webp,avif,gif,bmp,tif,tiff,ppm,pgm,pbm}", without);
  lade::runtime runtime(runtime_options(wanted));
  print_heading(wanted, describe_files(image_loader, images), runtime);

  // clang-format off
  auto order = lade::from(images);
  if (wanted.train) order = order | lade::shuffle({.seed = wanted.seed});
  const auto files = order
      | lade::repeat(wanted.epochs)
      | lade::map(lade::io::read,
                  {.concurrency = wanted.read_ahead, .on_error = bad});
  // clang-format on
  const auto batches = wanted.device >= 0
                           ? images_by_gpu(files, image, wanted, result)
                           : files | lade::batch_into(lade::media::decode_image(image),
                                                      {.size = wanted.batch, .on_error = bad});

  run_loader(image_loader, wanted, runtime, batches, images.size(), result, without);
}

int main(int argc, char** argv) { return run_program(image_loader, argc, argv, load); }
