// Random files that records.py writes, against what it says is in them.

#include <lade/io/formats/json_lines.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"

namespace lade::io {

using lines = std::vector<std::string>;

static std::string hex(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string made;
  for (auto c : text) {
    made += digits[static_cast<unsigned char>(c) >> 4];
    made += digits[static_cast<unsigned char>(c) & 15];
  }
  return made;
}

static std::string text_of(const tensor& value) {
  std::string shape;
  for (auto extent : value.shape()) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  return "tensor:" + std::string(name(value.type())) + ":" + shape + ":" +
         hex({reinterpret_cast<const char*>(value.bytes()), value.spec().bytes()});
}

static std::string text_of(const field& value) {
  switch (value.type()) {
    case field::kind::bytes: return "bytes:" + hex(value.bytes().text());
    case field::kind::text: return "text:" + hex(value.text());
    case field::kind::integer: return "integer:" + std::to_string(value.integer());
    case field::kind::number:
      return "number:" +
             (std::isnan(value.number()) ? std::string("nan") : hex(test::little(value.number())));
    case field::kind::tensor: return text_of(value.tensor());
  }
  return {};
}

static std::string text_of(const sample& from) {
  std::string line;
  for (auto& value : from.fields()) line += (line.empty() ? "" : " ") + text_of(value);
  return line;
}

static lines texts_of(const std::vector<sample>& samples) {
  lines texts;
  for (auto& each : samples) texts.push_back(text_of(each));
  return texts;
}

static lines lines_of(const std::string& path) {
  std::ifstream file(path);
  lines all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  return all;
}

// __FILE__ may be relative to the build directory, which the program is in or below.
static std::string script_path() {
  auto from = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
    from = from.parent_path();
  return (from / __FILE__).parent_path() / "records.py";
}

// The files of records.py, made once for all tests.
class Records : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    seed_ = test::new_seed() % 1'000'000'000;
    dir_ = new testing_support::temp_dir();
    auto line = "/usr/bin/python3 " + script_path() + " " + std::to_string(seed_) + " " +
                dir_->path().string();
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  // Compares what `read` returns for each file of this kind.
  template <class F>
  void compare(const std::string& extension, F read) {
    for (int i = 0; i < 30; ++i) {
      auto path = *dir_ / (std::to_string(i) + extension);
      SCOPED_TRACE("LADE_SEED=" + std::to_string(seed_) + " " + path);
      ASSERT_EQ(read(path), lines_of(path + ".expected"));
    }
  }

  runtime runtime_{{.threads = 2}};

 private:
  static inline std::uint64_t seed_ = 0;
  static inline testing_support::temp_dir* dir_ = nullptr;
};

TEST_F(Records, OfTfrecordFilesAreTheExamples) {
  compare(".tfrecord", [&](const std::string& path) {
    auto records = sync_wait(runtime_, test::collect(read_tfrecord(sample(path))));
    for (auto& each : records) each = parse_example(each);
    return texts_of(records);
  });
}

TEST_F(Records, OfMegatronAreTheDocuments) {
  compare(".idx", [&](const std::string& path) {
    auto file = token_file::open_megatron(path.substr(0, path.size() - 4));
    lines texts;
    for (std::uint64_t i = 0; i < file.documents(); ++i) {
      auto begin = file.document_begin(i);
      texts.push_back(text_of(file.tokens(begin, file.document_begin(i + 1) - begin)));
    }
    return texts;
  });
}

TEST_F(Records, OfMdsAreTheSamplesByShardAndByIndex) {
  compare(".mds", [&](const std::string& path) {
    auto data = sync_wait(runtime_, open_mds(path));
    std::vector<sample> samples;
    for (auto& shard : data.shards())
      for (auto& each : sync_wait(runtime_, test::collect(read_mds_shard(data)(shard))))
        samples.push_back(each);
    auto texts = texts_of(samples);
    EXPECT_EQ(texts.size(), data.size());
    bool is_compressed = std::filesystem::exists(path + "/shard.00000.mds.gz");
    for (std::uint64_t i = 0; i < data.size() && !is_compressed; ++i)
      EXPECT_EQ(text_of(sync_wait(runtime_, data(i))), texts[i]);
    return texts;
  });
}

TEST_F(Records, OfJsonLinesAreTheObjects) {
  compare(".jsonl", [&](const std::string& path) {
    return texts_of(sync_wait(runtime_, test::collect(read_json_line(sample(path)))));
  });
}

TEST_F(Records, OfCsvAreTheRows) {
  compare(".csv", [&](const std::string& path) { return texts_of(manifest(path).list_all()); });
}

}  // namespace lade::io
