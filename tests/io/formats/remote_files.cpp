#include <lade/checksum.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/formats/json_lines.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/io/formats/npy.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/io/formats/safetensors.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/io/formats/zip.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sync_wait.hpp>

#include <span>
#include <utility>

#include "bytes.hpp"
#include "remote_files.hpp"
#include "tar_bytes.hpp"
#include "zip_writer.hpp"

namespace lade::test {

static std::string text_of_tensor(const tensor& from) {
  std::string text(name(from.spec().type));
  for (auto size : from.shape()) text += ' ' + std::to_string(size);
  return text + ": " +
         std::string(reinterpret_cast<const char*>(from.bytes()), from.spec().bytes()) + '\n';
}

static std::string text_of_field(const field& from) {
  auto text = from.name() + " = ";
  switch (from.type()) {
    case field::kind::bytes: return text + std::string(from.bytes().text()) + '\n';
    case field::kind::text: return text + std::string(from.text()) + '\n';
    case field::kind::integer: return text + std::to_string(from.integer()) + '\n';
    case field::kind::number: return text + std::to_string(from.number()) + '\n';
    default: return text + text_of_tensor(from.tensor());
  }
}

// Without the key, which begins with the file's name.
static std::string text_of_sample(const sample& from) {
  auto text = "sample " + std::to_string(from.label()) + ' ';
  if (from.has_data()) text += from.data().text();
  for (auto& each : from.fields()) text += '\n' + text_of_field(each);
  return text + '\n';
}

static std::string text_of_run(runtime& where, const pipeline<sample>& stages) {
  std::string text;
  for (auto& each : where.run(stages)) text += text_of_sample(each);
  return text;
}

static std::vector<sample> only(const std::string& path) { return {sample(path)}; }

static std::string npy_file() {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string((64 - (header.size() + 11) % 64) % 64, ' ') + '\n';
  std::string elements;
  for (std::int32_t i = 0; i < 6; ++i) elements += little<std::int32_t>(i * 1000);
  return std::string("\x93NUMPY\x01\0", 8) + little(header.size(), 2) + header + elements;
}

static remote_file npy() {
  return {"npy", "a.npy", {{"a.npy", npy_file()}}, [](runtime& where, const std::string& path) {
            return text_of_tensor(sync_wait(where, io::read_npy(path)));
          }};
}

static remote_file npz() {
  auto file = zip_of({{"x.npy", npy_file()}, {"y.npy", npy_file(), true}, {"note", "text"}});
  return {"npz", "a.npz", {{"a.npz", file}}, [](runtime& where, const std::string& path) {
            std::string text;
            for (auto& each : sync_wait(where, io::read_npz(path))) text += text_of_field(each);
            return text;
          }};
}

static task<std::string> read_members(std::string path) {
  auto archive = co_await io::open_zip(std::move(path));
  std::string text;
  for (auto& member : archive.members()) {
    auto content = co_await archive.read(member);
    text += member.name() + " = " + std::string(content.text()) + '\n';
  }
  auto plain = co_await archive.open("plain");
  auto part = co_await plain->read_at(2, 3);
  co_return text + std::string(part.text());
}

static remote_file zip() {
  auto file = zip_of({{"plain", "some text"}, {"small", std::string(3000, 'x'), true}});
  return {"zip", "a.zip", {{"a.zip", file}}, [](runtime& where, const std::string& path) {
            return sync_wait(where, read_members(path));
          }};
}

static std::string safetensors_file_of_two() {
  const std::string header =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[8,11]}}";
  return little<std::uint64_t>(header.size()) + header + little(1.5f) + little(-2.f) +
         std::string("\1\0\1", 3);
}

static remote_file safetensors() {
  return {"safetensors",
          "a.safetensors",
          {{"a.safetensors", safetensors_file_of_two()}},
          [](runtime& where, const std::string& path) {
            std::string text;
            for (auto& each : sync_wait(where, io::read_safetensors(path)))
              text += text_of_field(each);
            return text;
          }};
}

static remote_file safetensors_one_by_one() {
  return {"safetensors_one_by_one",
          "a.safetensors",
          {{"a.safetensors", safetensors_file_of_two()}},
          [](runtime& where, const std::string& path) {
            auto file = sync_wait(where, io::open_safetensors(path));
            return text_of_tensor(sync_wait(where, file.read("b"))) +
                   text_of_tensor(sync_wait(where, file.read("a")));
          }};
}

static std::string wav_file() {
  std::string samples;
  for (std::int16_t i = 0; i < 300; ++i) samples += little<std::int16_t>(i);
  auto format =
      little(1, 2) + little(1, 2) + little(100, 4) + little(200, 4) + little(2, 2) + little(16, 2);
  auto chunks = "WAVEfmt " + little(16, 4) + format + "data" + little(samples.size(), 4) + samples;
  return "RIFF" + little(chunks.size(), 4) + chunks;
}

static remote_file wav(const std::string& name, io::wav_options options) {
  return {name, "a.wav", {{"a.wav", wav_file()}}, [=](runtime& where, const std::string& path) {
            return text_of_tensor(sync_wait(where, io::read_wav(path, options)));
          }};
}

static remote_file wav_info() {
  return {
      "wav_info", "a.wav", {{"a.wav", wav_file()}}, [](runtime& where, const std::string& path) {
        auto info = sync_wait(where, io::read_wav_info(path));
        return std::to_string(info.sample_rate) + ' ' + std::to_string(info.frames);
      }};
}

static remote_file mds() {
  std::string shard = little<std::uint32_t>(2) + little<std::uint32_t>(16) +
                      little<std::uint32_t>(21) + little<std::uint32_t>(27) +
                      little<std::uint32_t>(1) + "a" + little<std::uint32_t>(2) + "bc";
  const std::string index =
      "{\"shards\":[{\"column_encodings\":[\"str\"],\"column_names\":[\"text\"],"
      "\"column_sizes\":[null],\"compression\":null,\"format\":\"mds\",\"hashes\":[],"
      "\"raw_data\":{\"basename\":\"0.mds\",\"bytes\":27,\"hashes\":{}},\"samples\":2,"
      "\"size_limit\":100,\"version\":2,\"zip_data\":null}],\"version\":2}";
  return {"mds",
          "d",
          {{"d/index.json", index}, {"d/0.mds", shard}},
          [](runtime& where, const std::string& path) {
            auto data = sync_wait(where, io::open_mds(path));
            auto shards = data.shards();
            return text_of_run(where,
                               from(std::move(shards)) | flat_map(io::read_mds_shard(data))) +
                   text_of_sample(sync_wait(where, data(1)));
          }};
}

static std::string tfrecord_checksum(std::string_view bytes) {
  auto crc = crc32c(std::as_bytes(std::span(bytes))).value();
  return little<std::uint32_t>(((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

static remote_file tfrecord() {
  std::string file;
  for (std::string data : {"first", "", "third"}) {
    auto length = little<std::uint64_t>(data.size());
    file += length + tfrecord_checksum(length) + data + tfrecord_checksum(data);
  }
  return {"tfrecord", "a.tfr", {{"a.tfr", file}}, [](runtime& where, const std::string& path) {
            return text_of_run(where, from(only(path)) | flat_map(io::read_tfrecord));
          }};
}

static std::string tar_of_two() {
  return tar_file("a.txt", "text of a") + tar_file("a.cls", "7") + tar_file("b.txt", "b") +
         tar_file("b.cls", "8") + tar_end();
}

static remote_file tar() {
  return {"tar", "a.tar", {{"a.tar", tar_of_two()}}, [](runtime& where, const std::string& path) {
            return text_of_run(where,
                               from(only(path)) | flat_map(io::read_tar.with({.label = "cls"})));
          }};
}

static remote_file from_shards() {
  return {"from_shards",
          "a.tar",
          {{"a.tar", tar_of_two()}},
          [](runtime& where, const std::string& path) {
            io::shards shards(std::vector<std::string>{path});
            return text_of_run(where, io::from_shards(shards, {.read = {.label = "cls"}}));
          }};
}

static remote_file index_shards() {
  return {"index_shards",
          "a.tar",
          {{"a.tar", tar_of_two()}},
          [](runtime& where, const std::string& path) {
            io::shards shards(std::vector<std::string>{path});
            auto samples = sync_wait(where, io::index_shards(shards, {.read = {.label = "cls"}}));
            return text_of_run(where, from(samples) | map(samples.read()));
          }};
}

static remote_file manifest() {
  return {"manifest",
          "list.csv",
          {{"list.csv", "path,label,offset,length\n/absent,7,2,3\n/other,8,0,1\n"}},
          [](runtime& where, const std::string& path) {
            return text_of_run(where, from(io::manifest(path)));
          }};
}

static remote_file json_lines() {
  return {"json_lines",
          "a.jsonl",
          {{"a.jsonl", "{\"a\":1,\"b\":\"text\"}\n\n{\"a\":2.5}\n"}},
          [](runtime& where, const std::string& path) {
            return text_of_run(where, from(only(path)) | flat_map(io::read_json_line));
          }};
}

static remote_file tokens() {
  return {
      "tokens", "a.bin", {{"a.bin", "0123456789"}}, [](runtime& where, const std::string& path) {
        auto file = sync_wait(where, io::open_tokens(path, element_type::u16));
        io::token_windows windows(file, {.length = 2});
        return windows.identity().substr(windows.identity().find(": ")) +
               text_of_tensor(sync_wait(where, windows.read(1)));
      }};
}

static remote_file megatron() {
  auto index = std::string("MMIDIDX\0\0", 9) + little<std::uint64_t>(1) + '\10' +
               little<std::uint64_t>(2) + little<std::uint64_t>(3) + little<std::int32_t>(3) +
               little<std::int32_t>(2) + little<std::int64_t>(0) + little<std::int64_t>(6) +
               little<std::int64_t>(0) + little<std::int64_t>(1) + little<std::int64_t>(2);
  return {"megatron",
          "a",
          {{"a.bin", "0123456789"}, {"a.idx", index}},
          [](runtime& where, const std::string& path) {
            auto file = sync_wait(where, io::open_megatron(path));
            return std::to_string(file.document_begin(1)) + ' ' +
                   text_of_tensor(sync_wait(where, file.read(1, 3)));
          }};
}

// Streams with a name that the program chooses.
static task<std::string> read_named(std::string path) {
  auto content = io::decompress(io::stream(path), path);
  auto members = io::tar_members(std::move(content), path);
  std::string text;
  while (auto* member = co_await members.next())
    text += member->name() + " = " + std::string(member->content().text()) + '\n';
  co_return text;
}

static remote_file named_stream() {
  return {
      "named_stream",
      "a.tar",
      {{"a.tar", tar_of_two()}},
      [](runtime& where, const std::string& path) { return sync_wait(where, read_named(path)); }};
}

std::vector<remote_file> remote_files() {
  return {npy(),
          npz(),
          zip(),
          safetensors(),
          safetensors_one_by_one(),
          wav("wav", {}),
          wav("wav_window", {.offset_seconds = 1, .duration_seconds = 0.5}),
          wav_info(),
          mds(),
          tfrecord(),
          tar(),
          from_shards(),
          index_shards(),
          manifest(),
          json_lines(),
          tokens(),
          megatron(),
          named_stream()};
}

}  // namespace lade::test
