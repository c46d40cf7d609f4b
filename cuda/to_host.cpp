#include "on_cpu_pool.hpp"
#include "transfers.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/error.hpp>
#include <lade/map.hpp>
#include <lade/per_run.hpp>
#include <lade/support/require.hpp>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace lade::cuda {

to_host_stage::to_host_stage(const to_host_options& options)
    : options_(options),
      memory_(share_of(options.memory)),
      name_(options.name.empty() ? "to_host" : options.name) {
  options_.name = {};
  lade::support::require_count(name_, "buffers", options.buffers, {.least = 1});
  require_host_accessible(name_, options.memory);
}

// The function of the stage in one run.
class host_copies {
 public:
  host_copies(runtime& runtime, std::shared_ptr<memory_resource> memory)
      : runtime_(&runtime), memory_(std::move(memory)) {}

  task<sample_batch> operator()(device_batch batch) const {
    return on_cpu_pool(copy(*this, std::move(batch)));
  }

 private:
  static constexpr std::size_t alignment = 64;

  static std::size_t stored_bytes(const tensor& value) {
    return (value.spec().bytes() + alignment - 1) / alignment * alignment;
  }
  static std::size_t stored_bytes(const device_batch& batch) {
    std::size_t sum = alignment;
    for (auto& each : batch.tensors()) sum += stored_bytes(each.tensor());
    return sum;
  }

  static std::size_t copied_bytes(const device_batch& batch) {
    std::size_t sum = 0;
    for (auto& each : batch.tensors()) sum += each.tensor().spec().bytes();
    return sum;
  }

  static void require_contiguous(const named_tensor& each) {
    if (each.tensor().contiguous()) return;
    throw error(errc::invalid_argument, "copy tensor " + each.name() + " from a GPU",
                "its elements are not in one piece");
  }

  // Throws for fixed addresses: several batches are copied at a time, and each would replace the
  // previous one.
  static void require_own_addresses(const device_batch& batch) {
    if (!batch.is_at_fixed_addresses()) return;
    throw error(errc::invalid_argument, "copy a batch from a GPU",
                "its tensors are those of to_device_options::into");
  }

  // Drops the batch on a thread of the CPU pool, where the driver may block.
  static task<sample_batch> copy(host_copies self, device_batch given) {
    auto batch = std::move(given);
    require_own_addresses(batch);
    for (auto& each : batch.tensors()) require_contiguous(each);
    auto& in = transfers::of(*self.runtime_);
    auto& from = self.memory_ ? *self.memory_ : in.pinned(batch.on());
    auto memory = co_await allocate(stored_bytes(batch), from);
    std::vector<buffer> written{memory};
    auto copied = queue(in, batch, memory);
    std::exception_ptr interrupted;
    try {
      co_await copied;
    } catch (...) {
      interrupted = std::current_exception();
    }
    if (interrupted) {
      in.keep(copied, std::move(written));
      std::rethrow_exception(interrupted);
    }
    in.count(copied_bytes(batch), 0);
    co_return received(batch, memory);
  }

  // Queues the copies, and returns an event after them.
  static event queue(transfers& in, const device_batch& batch, const buffer& memory) {
    auto& on = in.to_host(batch.on());
    batch.wait_on(on);
    queued_copies copies(in, on, {memory});
    auto* to = memory.data();
    for (auto& each : batch.tensors()) {
      copies.copy_to_host(to, each.tensor().bytes(), each.tensor().spec().bytes());
      to += stored_bytes(each.tensor());
    }
    return copies.finish_unkept();
  }

  static sample_batch received(const device_batch& batch, const buffer& memory) {
    std::vector<named_tensor> tensors;
    std::size_t offset = 0;
    for (auto& each : batch.tensors()) {
      auto& spec = each.tensor().spec();
      tensors.emplace_back(each.name(), tensor(spec, memory.slice(offset, spec.bytes())));
      offset += stored_bytes(each.tensor());
    }
    return {std::move(tensors), batch.samples()};
  }

  runtime* runtime_;
  std::shared_ptr<memory_resource> memory_;  // null: pinned memory of the runtime
};

pipeline<sample_batch> to_host_stage::attach(const pipeline<device_batch>& in) const {
  auto begin = [memory = memory_](const stage_run& run) {
    return host_copies(run.runtime(), memory);
  };
  return in | map(per_run(begin), {.concurrency = options_.buffers,
                                   .buffer = 0,
                                   .on_error = on_error::fail,
                                   .name = name_,
                                   .kind = "to_host"});
}

}  // namespace lade::cuda
