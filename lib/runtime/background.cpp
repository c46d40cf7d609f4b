#include <lade/background.hpp>
#include <lade/continue_on.hpp>
#include <lade/failure.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include <exception>
#include <stop_token>
#include <system_error>

#include <lade/detail/coroutines/is_stop.hpp>

namespace lade {
namespace detail {

// Rethrows the exception that is being handled, as a failure of the work.
[[noreturn]] static void fail_background(const std::string& name) {
  auto cause = std::current_exception();
  try {
    throw;
  } catch (const std::system_error& e) {
    // The run has not been stopped. With the code `stopped`, the failure would look like its end.
    std::error_code code = is_stop(cause) ? make_error_code(errc::failed) : e.code();
    throw stage_error(cause, code, name, {}, {}, e.what());
  } catch (const std::exception& e) {
    throw stage_error(cause, errc::failed, name, {}, {}, e.what());
  } catch (...) {
    throw stage_error(cause, errc::failed, name, {}, {}, "an exception of unknown type");
  }
}

// Background work has a separate stop token, `over`. The stop token of the children is stopped by
// the first failure, before the consumer has received the remaining items.
static task<> work_until(std::stop_token over, run_state& run, std::string name, task<> work) {
  auto execution = run.make_context(over);
  auto& home = run.runtime().reactor();
  execution.home = &home;
  bool has_begun = false;
  try {
    co_await continue_on(home);
    has_begun = true;
    co_await with_context(execution, std::move(work));
  } catch (...) {
    bool is_stopped = is_stop(std::current_exception());
    if (is_stopped && over.stop_requested()) co_return;
    if (is_stopped && !has_begun) throw;
    fail_background(name);
  }
}

static task<> begin_background(const std::string& name, const std::function<task<>()>& work) {
  try {
    return work();
  } catch (...) {
    fail_background(name);
  }
}

void start_background(run_state& run, std::string name, const std::function<task<>()>& work) {
  auto running = begin_background(name, work);
  auto over = run.over.get_token();
  run.children().scope().start(
      work_until(std::move(over), run, std::move(name), std::move(running)));
}

}  // namespace detail

bool start_background(const context& where, const void* key, std::string name,
                      const std::function<task<>()>& work) {
  if (!where.run || !where.run->is_first_start(key)) return false;
  detail::start_background(*where.run, std::move(name), work);
  return true;
}

}  // namespace lade
