// Reads any bytes as an archive, as it is and in small chunks, with each policy, and as an index.

#include <lade/async_generator.hpp>
#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/io/formats/tar_index.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace lade;

static buffer copy_of(const std::uint8_t* data, std::size_t size) {
  buffer bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  return bytes;
}

static async_generator<buffer> chunks_of(buffer bytes, std::size_t chunk_bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    auto chunk = bytes.slice(at, std::min(chunk_bytes, bytes.size() - at));
    co_yield chunk;
  }
}

// What is read before a failure, and the failure.
static task<std::string> read_all(async_generator<io::tar_member> members) {
  std::string all;
  try {
    while (auto* member = co_await members.next())
      all += member->name() + "=" + std::to_string(member->offset()) + "=" +
             std::string(member->content().text()) + ";";
  } catch (const error& failure) {
    all += failure.code().message();
  }
  co_return all;
}

static std::string read(const buffer& bytes, std::size_t chunk_bytes, io::on_damage policy) {
  io::damage_log log;
  io::tar_options options{.max_member_bytes = 1 << 20, .on_damage = policy, .log = &log};
  auto archive = io::decompress(chunks_of(bytes, chunk_bytes), "a.tar",
                                {.max_bytes = 1 << 22, .max_window_bytes = 1 << 20});
  return sync_wait(read_all(io::tar_members(std::move(archive), "a.tar", options)));
}

static void index(const buffer& bytes) {
  try {
    auto made = sync_wait(io::index_tar(std::make_shared<memory_reader>(bytes)));
    if (io::tar_index_from_bytes(io::to_bytes(made)) != made) std::abort();
  } catch (const error&) {}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = copy_of(data, size);
  for (auto policy : {io::on_damage::fail, io::on_damage::skip_member, io::on_damage::end_archive})
    if (read(bytes, 1 << 20, policy) != read(bytes, 700, policy)) std::abort();
  index(bytes);
  return 0;
}
