#include "copy_plan.hpp"
#include "fixed_tensors.hpp"
#include "transfers.hpp"

#include <lade/cuda/to_device.hpp>
#include <lade/error.hpp>
#include <lade/map.hpp>
#include <lade/per_run.hpp>
#include <lade/support/require.hpp>
#include <lade/trace.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

detail::to_device_settings::to_device_settings(const to_device_options& options)
    : options_(options),
      memory_(share_of(options.memory)),
      host_memory_(share_of(options.host_memory)),
      name_(options.name.empty() ? "to_device" : options.name),
      into_(options.into.begin(), options.into.end()) {
  options_.name = {};
  options_.into = {};
  lade::support::require_count(name_, "buffers", options.buffers, {.least = 1});
  if (options.host_memory) require_pinned(*options.host_memory);
  for (auto& each : into_) require_into(each);
  if (!into_.empty()) fixed_ = std::make_shared<fixed_tensors>();
}

// Other memory is refused: batches would be staged in it a second time.
void detail::to_device_settings::require_pinned(const memory_resource& memory) const {
  using kind = lade::device::kind;
  auto device = memory.where();
  if (device.type == kind::cuda_host || device.type == kind::cuda_managed) return;
  lade::support::refuse_value(name_, "host_memory",
                              fmt::format("{} ({})", memory.name(), to_string(device)),
                              "pinned or managed memory");
}

void detail::to_device_settings::require_into(const named_tensor& each) const {
  lade::device target{lade::device::kind::cuda, options_.device};
  auto refuse = [&](const std::string& reason) {
    throw error(errc::invalid_argument, name_ + " into " + each.name(), reason);
  };
  if (each.tensor().where() != target)
    refuse(
        fmt::format("it is in {}, not in {}", to_string(each.tensor().where()), to_string(target)));
  if (!each.tensor().contiguous() || each.tensor().rank() == 0)
    refuse("it is not contiguous, or has no dimension");
  if (find_fixed(each.name()) != &each.tensor()) refuse("two tensors have that name");
  for (auto* before = into_.data(); before != &each; ++before)
    if (overlap(before->tensor(), each.tensor())) refuse("it overlaps with " + before->name());
}

const tensor* detail::to_device_settings::find_fixed(const std::string& name) const noexcept {
  auto found = std::ranges::find(into_, name, &named_tensor::name);
  return found == into_.end() ? nullptr : &found->tensor();
}

static std::string text_of(const tensor_spec& spec) {
  return std::string(name(spec.type)) + to_string(spec.shape);
}

// The part of a tensor at a fixed address that a batch is copied to.
static tensor fixed_part(const tensor& fixed, const copy_plan::part& part) {
  bool fits = fixed.type() == part.spec.type && part.spec.shape.size() > 0 &&
              fixed.shape().tail() == part.spec.shape.tail() &&
              part.spec.shape[0] <= fixed.shape()[0];
  if (fits) return fixed.slice(0, part.spec.shape[0]);
  throw error(errc::invalid_argument, fmt::format("copy tensor {} to its fixed address", part.name),
              fmt::format("it is {}, and there is {}", text_of(part.spec), text_of(fixed.spec())));
}

// The number of batches of a run that are queued on the GPU, as a level of its trace. Copies may
// finish after the run and its trace have ended.
class queue_level {
 public:
  explicit queue_level(const stage_run& run) {
    if (run.trace()) shared_ = std::make_shared<shared>(run);
  }
  queue_level(queue_level&&) = default;
  ~queue_level() {
    if (shared_) shared_->end();
  }

  // Adds one. Call the returned function, which may be empty, when it has finished.
  std::function<void()> add() const {
    if (!shared_) return {};
    shared_->change(1);
    return [level = shared_] { level->change(-1); };
  }

 private:
  struct shared {
    explicit shared(const stage_run& stage) : to(stage.trace()), run(stage) {}

    // Without memory for it, the trace lacks the event.
    void change(int by) noexcept try {
      std::lock_guard lock(mutex);
      count += static_cast<std::uint64_t>(by);
      if (to) to->add_levels(run->stage() + " on the GPU", {{"queued", count}});
    } catch (...) {}

    void end() noexcept {
      std::lock_guard lock(mutex);
      to = nullptr;
      run.reset();
    }

    std::mutex mutex;
    trace* to;                     // guarded by `mutex`, like the members below
    std::optional<stage_run> run;  // set while `to` is set
    std::uint64_t count = 0;
  };

  std::shared_ptr<shared> shared_;  // null without a trace
};

// The function of the stage in one run.
class detail::device_copies {
 public:
  device_copies(std::shared_ptr<const to_device_settings> settings, const stage_run& run)
      : settings_(std::move(settings)),
        run_(run),
        fixed_(claim_fixed_tensors(settings_->fixed(), settings_->name(), settings_->into())),
        queue_(run),
        transfers_(transfers::of(run.runtime())),
        copying_(device(settings_->options().device)),
        memory_(settings_->options().memory),
        host_memory_(settings_->options().host_memory) {
    if (!memory_) memory_ = &transfers_.memory(copying_.on());
    if (!host_memory_) host_memory_ = &transfers_.pinned(copying_.on());
    if (memory_->on() != copying_.on())
      throw error(errc::invalid_argument, settings_->name(), "the memory is that of another GPU");
  }

  memory_resource& host_memory() const noexcept { return *host_memory_; }

  std::size_t memory_needed(const sample_batch& batch) const {
    return copy_plan(batch).staging_bytes();
  }

  device_batch operator()(sample_batch&& batch) const {
    copy_plan plan(batch);
    require_all(plan);
    auto staging = stage(batch, plan);
    device_block block(*memory_, std::max(plan.bytes(), std::size_t{1}), copying_);
    auto ready = copy(plan, staging, block);
    transfers_.count(plan.bytes(), plan.staged_bytes());
    report_refusal();
    return make_batch(std::move(batch), plan, block, ready);
  }

 private:
  // Throws if a tensor at a fixed address would keep the contents of an earlier batch.
  void require_all(const copy_plan& plan) const {
    for (auto& fixed : settings_->into()) {
      auto parts = std::ranges::count(plan.parts(), fixed.name(), &copy_plan::part::name);
      if (parts == 1) continue;
      throw error(errc::invalid_argument,
                  fmt::format("copy tensor {} to its fixed address", fixed.name()),
                  parts == 0 ? "the batch has no tensor of that name"
                             : "the batch has labels, and a tensor of that name");
    }
  }

  static buffer stage(const sample_batch& batch, const copy_plan& plan) {
    if (plan.staging_bytes() == 0) return {};
    auto staging = allocate_now(plan.staging_bytes());
    plan.stage(batch, staging.data());
    return staging;
  }

  event copy(const copy_plan& plan, const buffer& staging, const device_block& to) const {
    queued_copies copies(transfers_, copying_, plan.sources(staging));
    for (auto& each : plan.parts())
      copies.copy_to_device(to.bytes().data() + each.offset, plan.source(each, staging),
                            each.spec.bytes());
    return copies.finish(queue_.add());
  }

  device_batch make_batch(sample_batch&& batch, const copy_plan& plan, const device_block& block,
                          const event& ready) const {
    std::vector<named_tensor> tensors;
    std::optional<tensor> labels;
    placements to_fixed{fixed_, {}};
    for (auto& each : plan.parts()) {
      tensor made(each.spec, block.slice(each.offset, each.spec.bytes()));
      if (auto* fixed = settings_->find_fixed(each.name)) {
        to_fixed.copies.push_back({made, fixed_part(*fixed, each)});
        made = to_fixed.copies.back().to;
      }
      if (each.is_labels)
        labels = std::move(made);
      else
        tensors.emplace_back(each.name, std::move(made));
    }
    std::vector<device_block> blocks{block};
    return {
        std::move(tensors), std::move(batch).samples(), std::move(labels), std::move(blocks), ready,
        std::move(to_fixed)};
  }

  void report_refusal() const {
    if (auto reason = transfers_.unreported_refusal(copying_.on()); !reason.empty())
      run_.warn(fmt::format("{}: copies are slow, because memory is not pinned: {}",
                            settings_->name(), reason));
  }

  std::shared_ptr<const to_device_settings> settings_;
  stage_run run_;
  std::shared_ptr<fixed_tensors> fixed_;  // null if there are none
  queue_level queue_;
  transfers& transfers_;
  stream copying_;
  device_resource* memory_;
  memory_resource* host_memory_;
};

pipeline<device_batch> to_device_stage::attach(const pipeline<sample_batch>& in) const {
  auto begin = [settings = settings_](const stage_run& run) {
    return detail::device_copies(settings, run);
  };
  return in | map(per_run(begin), {.concurrency = 1,
                                   .buffer = settings_->options().buffers - 1,
                                   .on_error = on_error::fail,
                                   .name = settings_->name(),
                                   .kind = "to_device"});
}

}  // namespace lade::cuda
