#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/media/load_image.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lade::media {

task<tensor> load_image(std::string path, image_options options, random draw) {
  const decode_image decode(options);
  auto from = co_await io::open_reader(std::move(path));
  co_return co_await decode.read(std::move(from), draw);
}

// The state that the workers of one load_images share.
struct image_list {
  const std::vector<std::string>& paths;
  const decode_image& decode;
  const tensor& images;
  random draw;  // its first number is the key of all images' draws
  std::atomic<std::size_t> next = 0;
};

static task<> load_slot(image_list& list, std::size_t i) {
  auto content = co_await io::read_file(list.paths[i]);
  auto& current = co_await this_context_reference();
  co_await continue_on_pool();
  if (current.stop.stop_requested()) throw error(errc::stopped, "decode " + list.paths[i]);
  auto keyed = list.draw;
  list.decode(sample(list.paths[i]).with_data(std::move(content)),
              list.images[static_cast<std::int64_t>(i)], random(keyed(), i));
}

static task<> load_next_slots(image_list& list) {
  for (auto i = list.next++; i < list.paths.size(); i = list.next++) co_await load_slot(list, i);
}

task<tensor> load_images(std::vector<std::string> paths, image_options options, random draw,
                         unsigned concurrency) {
  const decode_image decode(options);
  if (options.width == 0 || concurrency == 0)
    throw error(errc::invalid_argument, "load images", "width, height and concurrency must be set");
  const tensor_spec spec{decode.spec().type,
                         decode.spec().shape.prepend(static_cast<std::int64_t>(paths.size()))};
  const auto memory = co_await allocate(spec.bytes());
  const tensor images(spec, memory);
  image_list list{paths, decode, images, draw};
  const auto current = co_await this_context();
  scope workers(current);
  for (std::size_t i = 0; i < std::min<std::size_t>(concurrency, paths.size()); ++i)
    workers.start(load_next_slots(list));
  co_await workers.join();
  co_return images;
}

}  // namespace lade::media
