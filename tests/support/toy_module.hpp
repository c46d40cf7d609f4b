// An example of a module of another project, for a device: scales. It uses public headers alone. It
// has a memory resource, a source of loads, a driver, an awaitable and a stage.
// docs/guides/writing-a-module.md explains it.

#pragma once

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/map.hpp>
#include <lade/memory_resource.hpp>
#include <lade/per_run.hpp>
#include <lade/pipeline.hpp>
#include <lade/promise.hpp>
#include <lade/reactor_service.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace toy {

// A resource: memory that the scales can reach. `in_use`: allocated bytes.
class scale_memory final : public lade::memory_resource {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    auto* memory = lade::host_memory().allocate(bytes, alignment);
    in_use += bytes;
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
    in_use -= bytes;
    lade::host_memory().deallocate(memory, bytes, alignment);
  }
  lade::device where() const noexcept override { return lade::host_memory().where(); }
  std::string_view name() const noexcept override { return "memory of the scales"; }

  std::atomic<std::size_t> in_use = 0;
};

// An index source for `lade::from`: the loads on a shelf. Load i has i + 1 bytes.
class shelf {
 public:
  shelf(std::string name, std::uint64_t loads) : name_(std::move(name)), loads_(loads) {}

  std::uint64_t size() const noexcept { return loads_; }
  lade::sample at(std::uint64_t i) const {
    auto load = lade::allocate_now(static_cast<std::size_t>(i) + 1);
    return lade::sample(name_ + "/" + std::to_string(i)).with_data(std::move(load));
  }
  std::string identity() const { return "shelf " + name_; }

 private:
  std::string name_;
  std::uint64_t loads_;
};

// A foreign completion: a driver that weighs each load on a new thread, which sets a promise.
class device {
 public:
  lade::future<std::size_t> weigh(lade::buffer load) {
    lade::promise<std::size_t> weighed;
    auto weight = weighed.get_future();
    std::lock_guard lock(mutex_);
    threads_.emplace_back(
        [to = std::move(weighed), load = std::move(load)]() mutable { to.set_value(load.size()); });
    return weight;
  }

 private:
  std::mutex mutex_;
  std::vector<std::jthread> threads_;
};

// A reactor service: a coroutine waits until the scales have settled, 100 microseconds after the
// last such wait has started.
class settling final : public lade::reactor_service {
 public:
  explicit settling(lade::reactor_thread& where) : reactor_service(where) {}

  class moment final : public lade::service_await<settling> {
   public:
    void await_resume() const {
      if (stopped() || ended_early()) throw lade::error(lade::errc::stopped, "settle the scales");
    }

   private:
    friend class settling;
    void begin() noexcept override { service().begin(*this); }
    void end_early() noexcept override { service().end(*this); }

    moment* next_ = nullptr;
  };

 private:
  void begin(moment& waiting) noexcept {
    waiting.next_ = std::exchange(waiting_, &waiting);
    set_timer(clock::now() + std::chrono::microseconds(100));
  }
  void end(moment& waiting) noexcept {
    auto** at = &waiting_;
    while (*at != &waiting) at = &(*at)->next_;
    *at = waiting.next_;
    waiting.complete("after the scales were left");
  }

  void ready(int, unsigned) noexcept override {}
  void expired() noexcept override { settled_ = true; }
  void end_turn() noexcept override {
    if (!std::exchange(settled_, false)) return;
    for (auto* next = std::exchange(waiting_, nullptr); next;) {
      auto& settled = *std::exchange(next, next->next_);
      settled.complete("after the scales had settled");
    }
  }

  moment* waiting_ = nullptr;
  bool settled_ = false;
};

// An awaitable: `co_await settled()` waits until the scales have settled.
class settled {
 public:
  settling::moment operator co_await() const noexcept { return {}; }
};

// The function of the stage. Each run makes one, which all workers of the stage call.
class weigh_samples {
 public:
  explicit weigh_samples(std::shared_ptr<scale_memory> memory) : memory_(std::move(memory)) {}

  lade::task<lade::sample> operator()(lade::sample in) const {
    if (in.data().size() == 0)
      throw lade::error(lade::errc::invalid_argument, "weigh " + in.name(), "it has no bytes");
    co_await settled();
    auto load = co_await lade::allocate(in.data().size(), *memory_);
    auto weight = device_->weigh(std::move(load));
    const auto bytes = co_await std::move(weight);
    co_return std::move(in).with_label(static_cast<std::int64_t>(bytes));
  }

 private:
  std::shared_ptr<scale_memory> memory_;
  std::shared_ptr<device> device_ = std::make_shared<device>();
};

// The stage: a map of weigh_samples.
class weigh {
 public:
  explicit weigh(std::shared_ptr<scale_memory> memory, lade::on_error policy = lade::on_error::fail)
      : memory_(std::move(memory)), policy_(policy) {}

  lade::pipeline<lade::sample> attach(const lade::pipeline<lade::sample>& in) const {
    auto begin = [memory = memory_](const lade::stage_run&) { return weigh_samples(memory); };
    return in |
           lade::map(lade::per_run(begin),
                     {.concurrency = 4, .on_error = policy_, .name = "weigh", .kind = "weigh"});
  }

 private:
  std::shared_ptr<scale_memory> memory_;
  lade::on_error policy_;
};

}  // namespace toy
