// Random files that records.py and packages of others write, against what is in them.

#include <lade/io/file.hpp>
#include <lade/io/formats/json_lines.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"
#include "oracle.hpp"

namespace lade::io::records_test {

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

// The samples that records.py says are in each file, by its name.
static std::map<std::string, lines> expected_in(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, lines> all;
  std::string name;
  for (std::size_t count = 0; file >> name >> count;) {
    std::string line;
    std::getline(file, line);
    auto& samples = all[name];
    while (samples.size() < count && std::getline(file, line)) samples.push_back(line);
  }
  return all;
}

// So many files of all formats, or of a package, that records.py has written.
class record_files {
 public:
  record_files(int count, const std::string& python, const std::string& package = "")
      : seed_(test::new_seed() % 1'000'000'000), count_(count) {
    auto line = python + " " + (test::formats_directory() / "records.py").string() + " " +
                std::to_string(seed_) + " " + dir_.path().string() + " " + std::to_string(count) +
                " " + package;
    if (std::system(line.c_str()) != 0) throw std::runtime_error("failed: " + line);
    expected_ = expected_in(dir_ / "expected");
  }

  // Compares what `read_one` returns for each file of this kind.
  template <class F>
  void compare(const std::string& extension, F read_one) const {
    for (int i = 0; i < count_; ++i) {
      auto name = std::to_string(i) + extension;
      SCOPED_TRACE("LADE_SEED=" + std::to_string(seed_) + " " + name);
      ASSERT_EQ(read_one(dir_ / name), expected_.at(name));
    }
  }

 private:
  testing_support::temp_dir dir_;
  std::uint64_t seed_;
  int count_;
  std::map<std::string, lines> expected_;
};

// How each format is read.
class RecordFiles : public testing::Test {
 protected:
  void compare_tfrecord(const record_files& files) {
    files.compare(".tfrecord", [&](const std::string& path) {
      auto records = sync_wait(runtime_, test::collect(read_tfrecord(sample(path))));
      for (auto& each : records) each = parse_example(each);
      return texts_of(records);
    });
  }

  void compare_json_lines(const record_files& files) {
    files.compare(".jsonl", [&](const std::string& path) {
      return texts_of(sync_wait(runtime_, test::collect(read_json_line(sample(path)))));
    });
  }

  void compare_mds(const record_files& files) {
    files.compare(".mds", [&](const std::string& path) {
      auto data = sync_wait(runtime_, open_mds(path));
      std::vector<sample> samples;
      for (auto& shard : data.shards())
        for (auto& each : sync_wait(runtime_, test::collect(read_mds_shard(data)(shard))))
          samples.push_back(each);
      auto texts = texts_of(samples);
      EXPECT_EQ(texts.size(), data.size());
      bool is_stored = data.shards()[0].key().ends_with(".mds");
      for (std::uint64_t i = 0; i < data.size() && is_stored; ++i)
        EXPECT_EQ(text_of(sync_wait(runtime_, data(i))), texts[i]);
      return texts;
    });
  }

  runtime runtime_{{.threads = 2}};
};

// Files of all formats, made once for all tests.
class Records : public RecordFiles {
 protected:
  static void SetUpTestSuite() { files_ = new record_files(300, test::debians_python); }
  static void TearDownTestSuite() {
    delete files_;
    files_ = nullptr;
  }

  static inline record_files* files_ = nullptr;
};

TEST_F(Records, OfTfrecordFilesAreTheExamples) { compare_tfrecord(*files_); }

TEST_F(Records, OfMegatronAreTheDocuments) {
  files_->compare(".idx", [&](const std::string& path) {
    auto prefix = path.substr(0, path.size() - 4);
    auto file = token_file::open_megatron(prefix);
    auto bin = sync_wait(runtime_, open_reader(prefix + ".bin"));
    auto idx = sync_wait(runtime_, open_reader(path));
    auto ranged = sync_wait(runtime_, open_megatron(std::move(bin), std::move(idx)));
    lines texts;
    for (std::uint64_t i = 0; i < file.documents(); ++i) {
      auto begin = file.document_begin(i);
      auto size = file.document_begin(i + 1) - begin;
      texts.push_back(text_of(file.tokens(begin, size)));
      EXPECT_EQ(text_of(sync_wait(runtime_, ranged.read(begin, size))), texts.back());
    }
    return texts;
  });
}

TEST_F(Records, OfMdsAreTheSamplesByShardAndByIndex) { compare_mds(*files_); }

TEST_F(Records, OfJsonLinesAreTheObjects) { compare_json_lines(*files_); }

TEST_F(Records, OfCsvAreTheRows) {
  files_->compare(".csv",
                  [&](const std::string& path) { return texts_of(manifest(path).list_all()); });
}

// Files that the packages of others write.
class Packages : public RecordFiles {
 protected:
  void SetUp() override {
    python_ = test::packages_python();
    if (!python_) GTEST_SKIP() << "LADE_PACKAGES_PYTHON is not set";
  }

  record_files files_of(const std::string& package) { return record_files(60, *python_, package); }

 private:
  std::optional<std::string> python_;
};

TEST_F(Packages, ZstandardCompressesRecordsThatAreRead) {
  auto files = files_of("zstandard");
  compare_tfrecord(files);
  compare_json_lines(files);
  compare_mds(files);
}

TEST_F(Packages, StreamingWritesMdsThatIsRead) {
  auto files = files_of("streaming");
  compare_mds(files);
}

TEST_F(Packages, WebdatasetWritesShardsThatAreRead) {
  auto files = files_of("webdataset");
  files.compare(".tar", [&](const std::string& path) {
    lines texts;
    for (auto& each : sync_wait(runtime_, test::collect(read_tar(sample(path))))) {
      auto line = hex(std::string_view(each.key()).substr(path.size() + 1));
      for (auto& file : each.fields()) line += " " + file.name() + "=" + hex(file.bytes().text());
      texts.push_back(line);
    }
    return texts;
  });
}

}  // namespace lade::io::records_test
