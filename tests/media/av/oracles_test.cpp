// Frames by number and by time equal the frames of PyAV and torchcodec. LADE_VIDEO_PEERS_PYTHON
// names a Python that has these packages (tests/bench/peers/install.sh DIRECTORY video installs
// them). Without it, that of LADE_PACKAGES_PYTHON has PyAV. LADE_ORACLE_QUERIES says how many
// random queries each of them answers.

#include <lade/media/av/packet_index.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/video.hpp>

#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "media_files.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/wait.h>

namespace lade::media::oracles_test {

struct frame_query {
  std::string path;
  std::vector<std::int64_t> numbers;
  std::vector<rational> times;  // in these frames, if they are asked for by time
};

static std::size_t queries_wanted() {
  const char* given = std::getenv("LADE_ORACLE_QUERIES");
  return given != nullptr ? std::stoul(given) : 100;
}

// torchcodec passes over the first group of pictures of an MPEG transport stream, and fails at its
// end. It turns pictures as their file says, which PyAV does not, counts packets that have no
// frame, and cannot distinguish frames with the same time.
static bool torchcodec_agrees(std::string_view file) {
  if (file.ends_with(".ts")) return false;
  for (const char* other : {"h264-rotated.mov", "h264-no-first-key.mkv", "h264-one-time.mkv",
                            "h264-repeated-times.mkv"})
    if (file == other) return false;
  return true;
}

static std::vector<media_recipe> recipes_for(std::string_view library) {
  std::vector<media_recipe> recipes;
  for (const auto& each : video_recipes())
    if (library != "torchcodec" || torchcodec_agrees(each.file)) recipes.push_back(each);
  return recipes;
}

// One to six frames each, in any order; the queries of a video follow each other.
static std::vector<frame_query> random_queries(std::span<const media_recipe> recipes,
                                               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<frame_query> queries;
  const auto wanted = queries_wanted();
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const auto path = video_path(recipes[i]);
    const auto size = static_cast<std::uint64_t>(video(read_bytes(path), path).size());
    const auto count = (i + 1) * wanted / recipes.size() - i * wanted / recipes.size();
    for (std::size_t made = 0; made < count; ++made) {
      std::vector<std::int64_t> numbers(1 + random() % 6);
      for (auto& number : numbers) number = static_cast<std::int64_t>(random() % size);
      queries.push_back({path, std::move(numbers), {}});
    }
  }
  return queries;
}

// Whether each frame begins after the one before, by so much that a time in the middle of it is no
// other's, and the file states that.
static bool states_rising_times(const packet_index& of) {
  if (of.is_sequential()) return false;
  for (std::int64_t i = 1; i < of.size(); ++i)
    if (of.time(i) - of.time(i - 1) < rational(1, 1'000)) return false;
  return true;
}

// The same frames, by a time in the middle third of each.
static std::vector<frame_query> by_time(std::vector<frame_query> queries, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string path;
  std::optional<packet_index> index;
  std::vector<frame_query> timed;
  for (auto& query : queries) {
    if (query.path != path) {
      path = query.path;
      index = index_video(read_bytes(path), path);
    }
    if (path.ends_with(".avi") || !states_rising_times(*index)) continue;
    for (const auto number : query.numbers) {
      const auto end = number + 1 < index->size() ? index->time(number + 1) : index->end();
      const rational part(static_cast<std::int64_t>(33 + random() % 33), 100);
      query.times.push_back(index->time(number) + (end - index->time(number)) * part);
    }
    timed.push_back(std::move(query));
  }
  return timed;
}

static std::string oracle_script() {
  auto from = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
    from = from.parent_path();
  return std::filesystem::canonical(from / __FILE__).parent_path() / "oracles.py";
}

// Null if there is none.
static const char* python() noexcept {
  const auto* of_peers = std::getenv("LADE_VIDEO_PEERS_PYTHON");
  return of_peers != nullptr ? of_peers : std::getenv("LADE_PACKAGES_PYTHON");
}

// Runs the script; returns its exit status.
static int ask(const std::string& library, const std::vector<frame_query>& queries,
               const std::string& answers) {
  const auto questions = answers + ".in";
  std::ofstream out(questions);
  out.precision(12);
  for (const auto& query : queries) {
    out << query.path;
    if (query.times.empty())
      for (const auto number : query.numbers) out << ' ' << number;
    else
      out << " @";
    for (const auto& time : query.times) out << ' ' << time.to_double();
    out << '\n';
  }
  out.close();
  const auto line = std::string(python()) + " " + oracle_script() + " " + library + " < " +
                    questions + " > " + answers;
  return WEXITSTATUS(std::system(line.c_str()));
}

static void expect_equal(const frame_query& query, const std::vector<frame>& frames,
                         const std::string& answer) {
  std::istringstream words(answer);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::string time;
    std::string md5;
    words >> time >> md5;
    const auto ours = digest_of(frames[i]);
    if (time != "nan") {
      EXPECT_NEAR(ours.time.value_or(-1).to_double(), std::stod(time), 1e-6)
          << query.path << ", frame " << query.numbers[i];
    }
    EXPECT_EQ(ours.md5, md5) << query.path << ", frame " << query.numbers[i];
  }
}

class Oracles : public testing::TestWithParam<const char*> {};

static std::vector<frame> frames_of(const frame_query& query) {
  const video opened(read_bytes(query.path), query.path);
  return query.times.empty() ? opened.frames(query.numbers) : opened.frames_at(query.times);
}

static void expect_answers(const std::string& library, const std::vector<frame_query>& queries) {
  const testing_support::temp_dir directory;
  const auto status = ask(library, queries, directory / "answers");
  if (status == 77) GTEST_SKIP() << library << " is not installed";
  ASSERT_EQ(status, 0);
  std::ifstream answers(directory / "answers");
  for (const auto& query : queries) {
    std::string answer;
    ASSERT_TRUE(std::getline(answers, answer));
    expect_equal(query, frames_of(query), answer);
  }
}

TEST_P(Oracles, HaveTheSameFramesByNumber) {
  if (python() == nullptr)
    GTEST_SKIP() << "neither LADE_VIDEO_PEERS_PYTHON nor LADE_PACKAGES_PYTHON is set";
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  expect_answers(GetParam(), random_queries(recipes_for(GetParam()), seed));
}

TEST_P(Oracles, HaveTheSameFramesByTime) {
  if (python() == nullptr)
    GTEST_SKIP() << "neither LADE_VIDEO_PEERS_PYTHON nor LADE_PACKAGES_PYTHON is set";
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  expect_answers(GetParam(), by_time(random_queries(recipes_for(GetParam()), seed), seed));
}

INSTANTIATE_TEST_SUITE_P(Libraries, Oracles, testing::Values("PyAV", "torchcodec"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace lade::media::oracles_test
