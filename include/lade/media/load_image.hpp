// Loads images with one line in a coroutine: read, decoded, converted.

#pragma once

#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <string>
#include <vector>

namespace lade::media {

// Reads a path, or a URL whose store is mounted, and decodes the image, as decode_image::read does.
//
//   auto pixels = co_await lade::media::load_image("cat.jpg", {.width = 224, .height = 224});
//
// Strings of the options must live until the task starts. Requires a runtime.
task<tensor> load_image(std::string path, image_options options = {}, random draw = {});

// The same for several images, at most `concurrency` at a time. Returns one contiguous tensor
// [images, ...] in memory of the caller's pool. Image i uses the draw random(draw(), i). The first
// image that fails ends the others. Throws error(invalid_argument) if the options have no width and
// height, or `concurrency` is 0. Throws error(stopped) between two images if the caller is
// cancelled.
task<tensor> load_images(std::vector<std::string> paths, image_options options, random draw = {},
                         unsigned concurrency = 16);

}  // namespace lade::media
