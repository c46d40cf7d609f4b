#include "capture_guard.hpp"
#include "check.hpp"
#include "gpu_work.hpp"
#include "jpeg_batch_writer.hpp"
#include "jpeg_header.hpp"
#include "jpeg_pixels.hpp"
#include "jpeg_session.hpp"
#include "on_cpu_pool.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/semaphore.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

namespace lade::cuda {

static constexpr std::string_view decoding_batch = "decode JPEG images on a GPU";

struct jpeg_decoder::state {
  state(device on, cpu_decoder cpu, const jpeg_decoder_options& requested);

  class lease;

  static task<std::vector<decoded_jpeg>> decode(std::shared_ptr<state> self,
                                                std::vector<jpeg_source> files);
  static task<resized_jpegs> decode_resized(std::shared_ptr<state> self,
                                            std::vector<jpeg_source> files, image_batch to,
                                            view_of views);
  static task<> run(state& self, const std::vector<jpeg_source>& files,
                    std::vector<jpeg_item>& items, jpeg_batch_writer* then);
  static task<> decode_fallbacks(state& self, std::vector<jpeg_item>& items);
  static task<> decode_fallback(state& self, jpeg_item& item, std::size_t index);

  std::vector<jpeg_item> plan(const std::vector<jpeg_source>& files, jpeg_session& session) const;
  jpeg_item plan_one(const jpeg_source& file, std::size_t index, jpeg_session& session,
                     tensor_spec& spec) const;
  void allocate(std::vector<jpeg_item>& items, const std::vector<tensor_spec>& specs,
                const stream& on) const;
  void copy_fallbacks(std::vector<jpeg_item>& items, const stream& on) const;
  void decode_on_cpu(jpeg_item& item, std::size_t index) const;
  void count(const std::vector<jpeg_item>& items) noexcept;

  jpeg_decoder_options options;
  std::shared_ptr<device_resource> memory;
  cpu_decoder fallback;
  jpeg_engines engines;
  semaphore free_sessions;
  std::mutex mutex;
  std::vector<std::unique_ptr<jpeg_session>> idle;  // guarded by the mutex
  std::array<std::atomic<std::uint64_t>, 5> routed{};
  std::atomic<std::uint64_t> failed = 0;
};

static const jpeg_decoder_options& checked(const jpeg_decoder_options& options, device on) {
  constexpr std::string_view doing = "make a JPEG decoder";
  lade::support::require_count(doing, "batches", options.batches, {1, 64});
  lade::support::require_count(doing, "max_pixels", static_cast<std::uint64_t>(options.max_pixels),
                               {1, std::uint64_t{1} << 32});
  if (options.memory && options.memory->on() != on)
    lade::support::refuse_value(doing, "memory", to_string(options.memory->where()),
                                fmt::format("memory of GPU {}", on.index()));
  return options;
}

static std::shared_ptr<device_resource> memory_of(device on, device_resource* given) {
  if (!given) return std::make_shared<device_memory>(on);
  return {share_of(*given), given};
}

jpeg_decoder::state::state(device on, cpu_decoder cpu, const jpeg_decoder_options& requested)
    : options(checked(requested, on)),
      memory(memory_of(on, requested.memory)),
      fallback(std::move(cpu)),
      engines(on, requested.hardware),
      free_sessions(requested.batches) {
  idle.reserve(requested.batches);
}

// The session of a batch that has a permit. The destructor reuses the session if the stream has
// passed the batch. Otherwise it waits for the stream and destroys the session, since memory of the
// batch is freed next. It also destroys the session while nvJPEG keeps too much memory.
class jpeg_decoder::state::lease {
 public:
  explicit lease(state& from) : from_(from) {
    std::lock_guard lock(from_.mutex);
    if (from_.idle.empty()) return;
    session_ = std::move(from_.idle.back());
    from_.idle.pop_back();
  }
  lease(const lease&) = delete;
  ~lease() {
    if (session_) return_session();
    from_.free_sessions.release();
  }

  jpeg_session& session() {
    if (!session_) session_ = std::make_unique<jpeg_session>(from_.engines, from_.options.planar);
    return *session_;
  }
  void has_passed() noexcept { passed_ = true; }

 private:
  void return_session() noexcept {
    if (!passed_) {
      capture_guard beside_captures;
      (void)api().stream_synchronize(session_->on().handle());
    }
    if (!passed_ || from_.engines.pinned_bytes() > from_.options.keep_pinned_bytes)
      return session_.reset();
    std::lock_guard lock(from_.mutex);
    from_.idle.push_back(std::move(session_));
  }

  state& from_;
  std::unique_ptr<jpeg_session> session_;
  bool passed_ = false;
};

static jpeg_route route_around(jpeg_obstacle obstacle) noexcept {
  switch (obstacle) {
    case jpeg_obstacle::rotation: return jpeg_route::rotated;
    case jpeg_obstacle::damage: return jpeg_route::damaged;
    case jpeg_obstacle::none:
    case jpeg_obstacle::kind: break;
  }
  return jpeg_route::unsupported;
}

// If the image has an obstacle, its part is checked after decoding.
jpeg_item jpeg_decoder::state::plan_one(const jpeg_source& file, std::size_t index,
                                        jpeg_session& session, tensor_spec& spec) const {
  jpeg_item item;
  item.source = &file;
  const auto header = read_jpeg_header(file.file().bytes());
  item.width = header.width;
  item.height = header.height;
  item.route = route_around(header.obstacle);
  const bool is_too_large = std::int64_t{header.width} * header.height > options.max_pixels;
  if (header.obstacle != jpeg_obstacle::none || is_too_large) return item;
  try {
    const auto part = part_within(file.part(), header.width, header.height);
    spec = spec_of(part.width, part.height, options.planar);
  } catch (const error& failure) {
    item.failure = named_failure(failure, jpeg_name(file, index));
    return item;
  }
  item.route = session.route(item);
  return item;
}

std::vector<jpeg_item> jpeg_decoder::state::plan(const std::vector<jpeg_source>& files,
                                                 jpeg_session& session) const {
  current_device current(engines.on());
  std::vector<jpeg_item> items;
  std::vector<tensor_spec> specs(files.size());
  items.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    items.push_back(plan_one(files[i], i, session, specs[i]));
  allocate(items, specs, session.on());
  return items;
}

// Makes one allocation for all images that the GPU decodes.
void jpeg_decoder::state::allocate(std::vector<jpeg_item>& items,
                                   const std::vector<tensor_spec>& specs, const stream& on) const {
  constexpr std::size_t alignment = 256;
  std::size_t bytes = 0;
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < items.size(); ++i) {
    first.push_back(bytes);
    if (is_on_gpu(items[i].route))
      bytes += (specs[i].bytes() + alignment - 1) / alignment * alignment;
  }
  if (bytes == 0) return;
  const device_block all(*memory, bytes, on);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_on_gpu(items[i].route)) continue;
    items[i].image = tensor(specs[i], all.slice(first[i], specs[i].bytes()));
    items[i].memory = all;
  }
}

void jpeg_decoder::state::decode_on_cpu(jpeg_item& item, std::size_t index) const {
  const auto name = jpeg_name(*item.source, index);
  try {
    item.decoded = arranged(fallback(item.source->file()), item.source->part(), options.planar);
  } catch (const std::exception& failure) {
    if (is_of_batch(failure)) throw;
    item.failure = named_failure(failure, name);
  }
}

static std::exception_ptr no_fallback_decoder(const jpeg_item& item, std::size_t index) {
  return std::make_exception_ptr(
      error(item.route == jpeg_route::damaged ? errc::invalid_data : errc::unsupported,
            "decode " + jpeg_name(*item.source, index),
            "the GPU cannot decode it, and the decoder was made without one for such images"));
}

task<> jpeg_decoder::state::decode_fallback(state& self, jpeg_item& item, std::size_t index) {
  const auto& current = co_await this_context_reference();
  if (current.stop.stop_requested()) throw error(errc::stopped, decoding_batch);
  self.decode_on_cpu(item, index);
}

// Ends when all children have ended, also after an exception.
task<> jpeg_decoder::state::decode_fallbacks(state& self, std::vector<jpeg_item>& items) {
  auto current = co_await this_context();
  scope children(current);
  try {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (is_on_gpu(items[i].route) || items[i].failure) continue;
      if (self.fallback)
        children.start(decode_fallback(self, items[i], i));
      else
        items[i].failure = no_fallback_decoder(items[i], i);
    }
  } catch (...) {
    children.fail(std::current_exception());
  }
  co_await children.join();
}

// Copies from pageable memory. Either CUDA copies it to its pinned memory before the call returns,
// or the batch keeps it until the stream has passed the copy.
void jpeg_decoder::state::copy_fallbacks(std::vector<jpeg_item>& items, const stream& on) const {
  current_device current(on.on());
  for (auto& item : items) {
    if (item.decoded.rank() == 0) continue;
    const auto bytes = item.decoded.spec().bytes();
    item.memory.emplace(*memory, bytes, on);
    item.image = tensor(item.decoded.spec(), item.memory->slice(0, bytes));
    check(api().memcpy_async(item.image.bytes(), item.decoded.bytes(), bytes,
                             cudaMemcpyHostToDevice, on.handle()),
          decoding_batch);
  }
}

void jpeg_decoder::state::count(const std::vector<jpeg_item>& items) noexcept {
  for (auto& item : items) {
    routed[static_cast<std::size_t>(item.route)].fetch_add(1, std::memory_order_relaxed);
    if (item.failure) failed.fetch_add(1, std::memory_order_relaxed);
  }
}

static std::vector<decoded_jpeg> results_of(std::vector<jpeg_item>& items) {
  std::vector<decoded_jpeg> results;
  results.reserve(items.size());
  for (auto& item : items) {
    if (item.failure)
      results.emplace_back(std::move(item.failure));
    else
      results.emplace_back(std::move(item.image), *std::move(item.memory));
  }
  return results;
}

// The GPU uses memory of `items`, `files` and `then` until the lease ends. If an exception prevents
// the coroutine from awaiting the GPU, the lease waits for it.
task<> jpeg_decoder::state::run(state& self, const std::vector<jpeg_source>& files,
                                std::vector<jpeg_item>& items, jpeg_batch_writer* then) {
  const auto& current = co_await this_context_reference();
  if (!current.runtime) throw error(errc::no_runtime, decoding_batch);
  co_await self.free_sessions.acquire();
  lease used(self);
  auto& session = used.session();
  std::optional<gpu_work> work;
  std::exception_ptr failure;
  try {
    items = self.plan(files, session);
    work.emplace(current);
    for (auto route : {jpeg_route::hardware, jpeg_route::gpu}) session.decode(items, route);
    co_await decode_fallbacks(self, items);
    self.copy_fallbacks(items, session.on());
    if (then) then->write(items, *self.memory, session.on());
  } catch (...) {
    failure = std::current_exception();
  }
  session.passed().record(session.on());
  co_await session.passed().uninterruptible();
  if (failure) std::rethrow_exception(failure);
  used.has_passed();
  self.count(items);
}

task<std::vector<decoded_jpeg>> jpeg_decoder::state::decode(std::shared_ptr<state> self,
                                                            std::vector<jpeg_source> files) {
  std::vector<jpeg_item> items;
  co_await run(*self, files, items, nullptr);
  co_return results_of(items);
}

task<resized_jpegs> jpeg_decoder::state::decode_resized(std::shared_ptr<state> self,
                                                        std::vector<jpeg_source> files,
                                                        image_batch to, view_of views) {
  if (self->options.planar)
    throw error(errc::invalid_argument, decoding_batch, "a planar decoder does not resize");
  if (files.empty()) throw error(errc::invalid_argument, decoding_batch, "there are no files");
  std::vector<jpeg_item> items;
  jpeg_batch_writer writer(to, std::move(views));
  co_await run(*self, files, items, &writer);
  co_return writer.take(items);
}

jpeg_decoder::jpeg_decoder(device on, cpu_decoder others, const jpeg_decoder_options& options)
    : state_(std::make_shared<state>(on, std::move(others), options)) {}

task<std::vector<decoded_jpeg>> jpeg_decoder::decode(std::vector<jpeg_source> files) const {
  return on_cpu_pool(state::decode(state_, std::move(files)));
}

task<resized_jpegs> jpeg_decoder::decode(std::vector<jpeg_source> files, image_batch to,
                                         view_of views) const {
  return on_cpu_pool(state::decode_resized(state_, std::move(files), to, std::move(views)));
}

jpeg_decoder::statistics jpeg_decoder::stats() const noexcept {
  auto routed = [this](jpeg_route route) {
    return state_->routed[static_cast<std::size_t>(route)].load(std::memory_order_relaxed);
  };
  return {.hardware = routed(jpeg_route::hardware),
          .gpu = routed(jpeg_route::gpu),
          .unsupported = routed(jpeg_route::unsupported),
          .rotated = routed(jpeg_route::rotated),
          .damaged = routed(jpeg_route::damaged),
          .failed = state_->failed.load(std::memory_order_relaxed),
          .pinned_bytes = state_->engines.pinned_bytes()};
}

bool jpeg_decoder::has_hardware() const noexcept {
  return state_->engines.has(jpeg_route::hardware);
}

device_resource& jpeg_decoder::memory() const noexcept { return *state_->memory; }

device jpeg_decoder::on() const noexcept { return state_->engines.on(); }

}  // namespace lade::cuda
