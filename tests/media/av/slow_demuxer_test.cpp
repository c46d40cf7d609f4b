#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/sync_wait.hpp>

#include "../../support/coroutines.hpp"
#include "../../support/reactors.hpp"
#include "demuxed_files.hpp"
#include "scripted_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade::media::slow_demuxer_test {

using test::scripted_reader;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;
using testing_support::reactor_name;
using testing_support::ReactorTest;

class SlowDemuxer : public ReactorTest {};

static task<std::vector<std::string>> read_slowly(std::shared_ptr<scripted_reader> from) {
  auto file = co_await demuxer::open(from);
  const auto elements = co_await collect_packets(file, all_streams(file), {.packets = 1});
  EXPECT_EQ(file.bytes_read(), from->bytes());
  co_return records_of(elements);
}

TEST_P(SlowDemuxer, ReadsTheSamePacketsAsInMemory) {
  runtime where(options());
  for (const auto& file : all_files()) {
    const auto from = std::make_shared<scripted_reader>(read_bytes(file.path()));
    EXPECT_EQ(sync_wait(where, read_slowly(from)), records_of_ffmpeg(file)) << file;
  }
}

// All reads of a file, of which tests let each fail or stop in turn.
static int reads_of(runtime& where) {
  const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
  sync_wait(where, read_slowly(from));
  return from->reads();
}

TEST_P(SlowDemuxer, EndsWithAStopAtAnyPoint) {
  runtime where(options());
  const int reads = reads_of(where);
  ASSERT_GT(reads, 3);
  for (int at = 0; at < reads; ++at) {
    const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
    std::stop_source stop;
    from->before = [&](int number) {
      if (number == at) stop.request_stop();
    };
    EXPECT_EQ(code_of([&] { sync_wait(where, read_slowly(from), stop.get_token()); }),
              errc::stopped)
        << "read " << at;
    EXPECT_EQ(from->reads(), at + 1);
  }
}

// FFmpeg takes a read that is interrupted for the end of the file.
TEST_P(SlowDemuxer, EndsWithAStopBetweenAnyTwoReads) {
  runtime where(options());
  const int reads = reads_of(where);
  for (int at = 0; at + 1 < reads; ++at) {
    const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
    std::stop_source stop;
    from->after = [&](int number) {
      if (number == at) stop.request_stop();
    };
    EXPECT_EQ(code_of([&] { sync_wait(where, read_slowly(from), stop.get_token()); }),
              errc::stopped)
        << "read " << at;
  }
}

TEST_P(SlowDemuxer, PassesOnTheErrorOfAnyRead) {
  runtime where(options());
  const int reads = reads_of(where);
  for (int at = 0; at < reads; ++at) {
    const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
    from->before = [at](int number) {
      if (number == at) throw error(errc::changed, "read part " + std::to_string(at), "it broke");
    };
    EXPECT_THAT([&] { sync_wait(where, read_slowly(from)); },
                ThrowsMessage<error>("read part " + std::to_string(at) + ": it broke"));
  }
}

// Streams a video whose reader fails once, and streams it again.
static task<std::vector<std::int64_t>> stream_after_a_failure(std::shared_ptr<scripted_reader> from,
                                                              int failing) {
  auto file = co_await demuxer::open(from);
  bool failed = false;
  from->before = [&](int number) {
    if (number >= failing && !std::exchange(failed, true))
      throw error(errc::changed, "read", "it broke");
  };
  while (true) {
    try {
      std::vector<std::int64_t> sizes;
      auto parts = file.stream(0, {.packets = 5});
      while (auto* part = co_await parts.next())
        for (const auto& each : *part) sizes.push_back(each.get().size);
      co_return sizes;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::changed);
    }
  }
}

TEST_P(SlowDemuxer, StreamsFromTheBeginningAfterAnError) {
  runtime where(options());
  const auto content = read_bytes(video_and_audio().path());
  const auto whole = std::make_shared<scripted_reader>(content);
  const auto expected = sync_wait(where, stream_after_a_failure(whole, 1 << 20));
  for (int failing = 2; failing < whole->reads(); ++failing)
    EXPECT_EQ(sync_wait(where, stream_after_a_failure(std::make_shared<scripted_reader>(content),
                                                      failing)),
              expected)
        << "read " << failing;
}

static task<> try_read(demuxer& file, std::error_code& refused) {
  try {
    co_await file.read(0);
  } catch (const error& failure) {
    refused = failure.code();
  }
}

static task<std::error_code> read_during_a_read(std::shared_ptr<scripted_reader> from) {
  auto file = co_await demuxer::open(from);
  std::error_code refused;
  from->during = [&] { return try_read(file, refused); };
  co_await file.read(0);
  co_return refused;
}

// A reader that claims more bytes than it has, or returns more than it is asked for.
class lying_reader final : public byte_reader {
 public:
  lying_reader(buffer content, std::size_t missing, std::size_t surplus)
      : content_(std::move(content)), missing_(missing), surplus_(surplus) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return content_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const auto end = content_.size() - missing_;
    const auto begin = std::min<std::size_t>(static_cast<std::size_t>(offset), end);
    const auto count = std::min(into.size(), end - begin);
    std::copy_n(content_.bytes().begin() + static_cast<std::ptrdiff_t>(begin), count, into.begin());
    co_return count + surplus_;
  }
  using byte_reader::read_at;

 private:
  buffer content_;
  std::size_t missing_;
  std::size_t surplus_;
  std::string name_ = "lying.ts";
};

static task<std::size_t> count_packets(std::shared_ptr<const byte_reader> from,
                                       damage_policy damage, std::uint64_t& damaged) {
  auto file = co_await demuxer::open(std::move(from), {.damage = damage});
  const auto all = co_await file.read(0);
  damaged = file.damaged();
  co_return all.size();
}

// The container does not state its length.
TEST_P(SlowDemuxer, NoticesAReaderThatEndsBeforeItsSize) {
  runtime where(options());
  const auto file = read_bytes(video_path(video_recipe("mpeg2.ts")));
  const auto from = std::make_shared<const lying_reader>(file, file.size() / 3, 0);
  std::uint64_t damaged = 0;
  EXPECT_THAT([&] { sync_wait(where, count_packets(from, damage_policy::refuse, damaged)); },
              ThrowsMessage<error>(HasSubstr("lying.ts")));
  EXPECT_GT(sync_wait(where, count_packets(from, damage_policy::tolerate, damaged)), 10U);
  EXPECT_GE(damaged, 1U);
}

TEST_P(SlowDemuxer, RefusesAReaderThatReturnsMoreThanItIsAskedFor) {
  runtime where(options());
  const auto file = read_bytes(video_path(video_recipe("mpeg2.ts")));
  const auto from = std::make_shared<const lying_reader>(file, 0, 1'000'000);
  std::uint64_t damaged = 0;
  EXPECT_THAT([&] { sync_wait(where, count_packets(from, damage_policy::refuse, damaged)); },
              ThrowsMessage<error>(HasSubstr("its reader returned")));
}

TEST_P(SlowDemuxer, OpensPaths) {
  runtime where(options());
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto file = sync_wait(where, demuxer::open(path));
  EXPECT_EQ(file.best(stream_kind::video).width(), 178);
  EXPECT_THROW(sync_wait(where, demuxer::open(std::string("/no/such/file.mp4"))), error);
}

TEST_P(SlowDemuxer, RefusesASecondCoroutine) {
  runtime where(options());
  const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
  EXPECT_EQ(sync_wait(where, read_during_a_read(from)), errc::wrong_thread);
}

static task<> visit_pool(runtime& where, int& served) {
  co_await continue_on(where.pool());
  ++served;
}

// Each read needs the only thread of the pool.
TEST_P(SlowDemuxer, NeverHoldsAThreadOfThePool) {
  runtime where(options(1));
  const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
  int served = 0;
  from->during = [&] { return visit_pool(where, served); };
  sync_wait(where, read_slowly(from));
  EXPECT_EQ(served, from->reads());
}

INSTANTIATE_TEST_SUITE_P(Reactors, SlowDemuxer,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

}  // namespace lade::media::slow_demuxer_test
