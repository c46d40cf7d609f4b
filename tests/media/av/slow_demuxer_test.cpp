#include <lade/detail/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/sync_wait.hpp>

#include "../../support/coroutines.hpp"
#include "../../support/reactors.hpp"
#include "demuxed_files.hpp"
#include "scripted_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace lade::media {

using test::scripted_reader;
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

TEST_P(SlowDemuxer, RefusesASecondCoroutine) {
  runtime where(options());
  const auto from = std::make_shared<scripted_reader>(read_bytes(video_and_audio().path()));
  EXPECT_EQ(sync_wait(where, read_during_a_read(from)), errc::wrong_thread);
}

static task<> visit_pool(runtime& where, int& served) {
  co_await detail::continue_on(where.pool());
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

}  // namespace lade::media
