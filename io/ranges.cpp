#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/ranges.hpp>
#include <lade/scope.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>
#include <lade/when_all.hpp>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace lade {

std::vector<detail::merged_range> detail::merge_ranges(std::span<const io::object_range> ranges,
                                                       const io::ranges_options& options) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(ranges[i].offset, i); });
  std::vector<merged_range> merged;
  std::uint64_t end = 0;  // of the last merged range
  for (auto i : order) {
    auto [offset, bytes] = ranges[i];
    auto first = merged.empty() ? offset : merged.back().all.offset;
    auto new_end = std::max(end, offset + bytes);
    bool is_near = !merged.empty() && (offset <= end || offset - end <= options.gap_bytes);
    if (is_near && new_end - first <= options.most_bytes) {
      merged.back().all.bytes = new_end - first;
      end = new_end;
    } else {
      merged.push_back({{offset, bytes}, {}});
      end = offset + bytes;
    }
    merged.back().parts.push_back(i);
  }
  return merged;
}

namespace io {

// Reads that workers share: each worker takes the next one.
struct shared_reads {
  const byte_reader& from;
  std::vector<std::pair<std::uint64_t, std::span<std::byte>>> reads = {};
  std::atomic<std::size_t> next = 0;
};

static task<> fill_some(shared_reads& work) {
  while (true) {
    auto number = work.next.fetch_add(1);
    if (number >= work.reads.size()) co_return;
    auto [offset, into] = work.reads[number];
    auto done = co_await work.from.read_at(into, offset);
    if (done != into.size())
      throw error(
          errc::invalid_data,
          fmt::format("read {} bytes at {} of {}", into.size(), offset, work.from.name()),
          fmt::format("{} {}", done < into.size() ? "it ended after" : "it returned", done));
  }
}

// The first failure cancels the other reads.
static task<> fill_all(shared_reads& work, unsigned concurrency) {
  auto workers = std::min<std::size_t>(concurrency, work.reads.size());
  if (workers == 1) co_return co_await fill_some(work);
  scope children(co_await this_context());
  for (std::size_t i = 0; i < workers; ++i) children.start(fill_some(work));
  co_await children.join();
}

static void require_inside_object(const byte_reader& object, const object_range& range) {
  auto size = object.size();
  if (range.offset <= size && range.bytes <= size - range.offset) return;
  throw error(errc::invalid_data,
              fmt::format("read {} bytes at {} of {}", range.bytes, range.offset, object.name()),
              fmt::format("it has {} bytes", size));
}

// Memory is allocated in order before the reads start: a read that waited for memory held by
// another read could wait forever.
task<std::vector<buffer>> read_ranges(std::shared_ptr<const byte_reader> from,
                                      std::vector<object_range> ranges, ranges_options options) {
  support::require_count("read ranges of " + from->name(), "concurrency", options.concurrency,
                         {.least = 1});
  for (auto& each : ranges) require_inside_object(*from, each);
  shared_reads work{*from};
  std::vector<buffer> results(ranges.size());
  for (auto& [all, parts] : detail::merge_ranges(ranges, options)) {
    if (all.bytes == 0) continue;
    auto memory = co_await allocate(static_cast<std::size_t>(all.bytes));
    for (auto i : parts)
      results[i] = memory.slice(static_cast<std::size_t>(ranges[i].offset - all.offset),
                                static_cast<std::size_t>(ranges[i].bytes));
    work.reads.emplace_back(all.offset, memory.bytes());
  }
  if (!work.reads.empty()) co_await fill_all(work, options.concurrency);
  co_return results;
}

static void require_parts(const byte_reader& from, const parts_options& options) {
  auto doing = "read parts of " + from.name();
  support::require_count(doing, "part_bytes", options.part_bytes,
                         {.least = 1, .most = std::uint64_t{1} << 30});
  support::require_count(doing, "concurrency", options.concurrency, {.least = 1});
}

task<> read_in_parts(std::shared_ptr<const byte_reader> from, std::span<std::byte> into,
                     std::uint64_t offset, parts_options options) {
  require_parts(*from, options);
  shared_reads work{*from};
  while (!into.empty()) {
    auto part = into.first(std::min(into.size(), options.part_bytes));
    work.reads.emplace_back(offset, part);
    into = into.subspan(part.size());
    offset += part.size();
  }
  if (!work.reads.empty()) co_await fill_all(work, options.concurrency);
}

// The next parts, at least one.
static task<std::vector<buffer>> read_next_parts(std::shared_ptr<const byte_reader> from,
                                                 std::uint64_t offset, unsigned parts,
                                                 std::size_t part_bytes) {
  std::vector<task<buffer>> reads;
  for (auto size = from->size(); offset < size && reads.size() < parts;) {
    auto end = std::min<std::uint64_t>(size, (offset / part_bytes + 1) * part_bytes);
    reads.push_back(from->read_at(offset, static_cast<std::size_t>(end - offset)));
    offset = end;
  }
  co_return co_await when_all(std::move(reads));
}

static async_generator<buffer> stream_parts_of(std::shared_ptr<const byte_reader> from,
                                               std::uint64_t offset, parts_options options) {
  for (unsigned parts = 1; offset < from->size();) {
    auto group = co_await read_next_parts(from, offset, parts, options.part_bytes);
    for (auto& each : group) {
      offset += each.size();
      auto part = std::move(each);
      co_yield part;
    }
    parts = std::min(2 * parts, options.concurrency);
  }
}

async_generator<buffer> stream_in_parts(std::shared_ptr<const byte_reader> from,
                                        std::uint64_t offset, parts_options options) {
  require_parts(*from, options);
  if (offset > from->size()) require_inside_object(*from, {offset, 0});
  return stream_parts_of(std::move(from), offset, options);
}

}  // namespace io
}  // namespace lade
