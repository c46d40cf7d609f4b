#include <lade/detail/run_state.hpp>

#include <algorithm>

namespace lade::detail {

context run_state::surroundings(std::stop_token stop) noexcept {
  context result;
  result.runtime = &runtime_;
  result.home = &runtime_.pool();
  result.stop = std::move(stop);
  result.memory = &runtime_.memory();
  return result;
}

stage_counters& run_state::add_stage(std::string name, const void* stage) {
  std::lock_guard lock(mutex_);
  auto known = std::ranges::find(opened_, stage);
  if (known != opened_.end()) return stages_[static_cast<std::size_t>(known - opened_.begin())];
  opened_.push_back(stage);
  return stages_.emplace_back(std::move(name));
}

void run_state::note_workers(stage_counters& stage, unsigned workers, bool on_reactor) {
  std::lock_guard lock(mutex_);
  stage.workers = workers;
  stage.on_reactor = on_reactor;
}

opening opening::of(const void* opened) const {
  auto result = *this;
  result.stage = opened;
  return result;
}

opening opening::until(std::stop_token requested) const {
  auto result = *this;
  result.stop = std::move(requested);
  return result;
}

std::uint64_t opening::round() const noexcept {
  auto epoch = run->options().epoch;
  return first == 0 ? epoch : random(epoch, first)();
}

void opening::throw_if_stopped(std::string_view doing) const {
  if (stop.stop_requested()) throw error(errc::stopped, doing);
}

std::exception_ptr opening::failure(stage_counters& counters, on_error policy, std::string item,
                                    const lineage& origin) const {
  if (stop.stop_requested()) return std::current_exception();
  return run->fail(counters, policy, std::move(item), origin);
}

std::exception_ptr run_state::fail(stage_counters& stage, on_error policy, std::string item,
                                   const lineage& origin) {
  stage.failed.fetch_add(1, std::memory_order_relaxed);
  if (item.empty() && !origin.empty()) item = "item " + to_string(origin);
  auto cause = std::current_exception();
  auto failure = [&](std::error_code code, std::string_view why) {
    if (policy == on_error::fail)
      return std::make_exception_ptr(
          stage_error(cause, code, stage.name(), std::move(item), origin, why));
    stage.skipped.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (failures_.size() < most_failures)
      failures_.push_back({stage.name(), std::move(item), std::string(why)});
    return std::exception_ptr();
  };
  try {
    throw;
  } catch (const stage_error&) {
    return cause;
  } catch (const std::system_error& e) {
    return failure(e.code(), e.what());
  } catch (const std::exception& e) {
    return failure(errc::failed, e.what());
  } catch (...) {
    return failure(errc::failed, "an exception of unknown type");
  }
}

std::vector<failure_record> run_state::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

bool run_state::short_of_memory(std::uint64_t items) const {
  std::uint64_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    for (auto& stage : stages_) bytes += stage.bytes.load(std::memory_order_relaxed);
  }
  return runtime_.memory().would_wait(bytes / items);
}

run_statistics run_state::statistics() const {
  run_statistics result;
  result.elapsed = clock::now() - started_;
  result.threads = runtime_.pool().size();
  result.cpus = available_cpus();
  result.sink_wait = std::chrono::nanoseconds(sink.starving.load());
  result.sink_blocked = std::chrono::nanoseconds(sink.output_wait.load());
  result.memory_wait = std::chrono::nanoseconds(memory_wait.load());
  result.delivered = sink.out;
  std::lock_guard lock(mutex_);
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage)  // added from the sink on
    result.stages.push_back(stage->snapshot());
  return result;
}

std::string short_type_name(std::string_view pretty_function, std::string_view otherwise) {
  auto begin = pretty_function.find("F = ");
  auto name = pretty_function.substr(begin == std::string_view::npos ? 0 : begin + 4);
  bool unnamed = name.find("lambda") < name.find_first_of(";]");
  if (begin == std::string_view::npos || unnamed) return std::string(otherwise);
  name = name.substr(0, name.find_first_of(";],<"));
  if (auto colon = name.rfind(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  return std::string(name);
}

}  // namespace lade::detail
