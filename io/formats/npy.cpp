#include "npy_header.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/npy.hpp>
#include <lade/url.hpp>

#include <utility>

namespace lade::io {

tensor parse_npy(const buffer& file, std::string_view name) {
  auto header = parse_npy_header(file.bytes(), name);
  buffer copy;
  if (!header.is_usable(file.data() + header.data_offset)) copy = allocate_now(header.spec.bytes());
  return make_npy_tensor(header, file, std::move(copy), name);
}

task<tensor> load_npy(buffer file, std::string name) {
  auto header = parse_npy_header(file.bytes(), name);
  buffer copy;
  if (!header.is_usable(file.data() + header.data_offset))
    copy = co_await allocate(header.spec.bytes());
  co_return make_npy_tensor(header, file, std::move(copy), name);
}

task<tensor> read_npy(std::string path) {
  auto file = co_await read_file(path);
  co_return co_await load_npy(std::move(file), without_secrets(path));
}

sample decode_npy::operator()(sample from) const {
  auto array = parse_npy(from.data(), from.name());
  return std::move(from).without_data().with_field(field(field_, std::move(array)));
}

}  // namespace lade::io
