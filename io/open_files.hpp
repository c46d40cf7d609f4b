// Keeps the descriptors that reads hold below the limit of the process.

#pragma once

#include <lade/wait_list.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace lade::detail {

// Counts the files that are open. Any thread.
//
// A read of a whole file waits for nothing while it holds its descriptor but for the read itself,
// so that waiting for such reads cannot lock up: at most `limit` are in progress. One that has to
// wait for something else with its file open steps aside; at most half as many are aside. Files
// that a program opens by itself may be held while their holder waits for another; their opens do
// not wait for the limit. Where the system refuses a descriptor, an open waits for the next close
// as long as somebody may close a file: a read, or a holder whose own opens do not wait.
class open_files {
 public:
  class read_awaiter;
  class close_awaiter;

  // A read of a whole file, which holds a descriptor until this dies.
  class permit {
   public:
    permit(permit&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), is_aside_(other.is_aside_) {}
    ~permit() {
      if (from_) from_->end_read(is_aside_ ? from_->aside_ : from_->reads_);
    }

    // Lets another read have this one's place, while its file stays open. Returns false if as many
    // are aside as may be.
    bool step_aside() noexcept;

   private:
    friend class read_awaiter;
    explicit permit(open_files& from) noexcept : from_(&from) {}

    open_files* from_;
    bool is_aside_ = false;
  };

  explicit open_files(std::size_t limit) noexcept : limit_(limit) {}

  // Those of this process. The limit is half of the descriptors that it may open: the others are
  // for files that a program opens by itself, and for what is not lade's.
  static open_files& of_process();

  // `co_await read_whole()` returns a permit, in the order of the calls. Throws error(stopped) when
  // the awaiting coroutine is asked to stop.
  [[nodiscard]] read_awaiter read_whole() noexcept;

  // `who` has opened, or closed, a file by itself.
  void hold(const context* who);
  void end_hold(const context* who) noexcept;

  // `co_await closed(who)` returns true after a close, and false if none can be expected.
  // `who` is whose open was refused; null for a read of a whole file.
  [[nodiscard]] close_awaiter closed(const context* who) noexcept;

 private:
  struct holder {
    std::size_t files = 0;
    std::size_t waiting = 0;  // of its opens
  };

  // Adds one to a count that is less than `limit`.
  static bool try_count(std::atomic<std::size_t>& count, std::size_t limit) noexcept;
  bool try_read() noexcept { return try_count(reads_, limit_); }
  void end_read(std::atomic<std::size_t>& count) noexcept;
  void serve_waiters() noexcept;

  // With the mutex held.
  bool may_close() const noexcept { return reads_ > stuck_reads_ || held_ > stuck_files_; }
  void begin_waiting(const context* who);
  void end_waiting(const context* who) noexcept;
  void erase_unused(const context* who) noexcept;

  const std::size_t limit_;
  std::atomic<std::size_t> reads_ = 0;
  std::atomic<std::size_t> aside_ = 0;
  std::atomic<bool> waiting_ = false;  // whether a list below may have waiters

  std::mutex mutex_;  // guards all that follows
  wait_list readers_;
  wait_list openers_;
  std::map<const context*, holder> holders_;
  std::size_t held_ = 0;         // files of all holders
  std::size_t stuck_files_ = 0;  // of holders whose opens wait
  std::size_t stuck_reads_ = 0;  // whose opens wait
};

class open_files::read_awaiter : private waiter {
 public:
  explicit read_awaiter(open_files& files) noexcept : files_(files) {}
  bool await_ready() const noexcept { return !files_.waiting_ && files_.try_read(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park_after_look(coroutine, files_.mutex_, files_.readers_, [this] {
      files_.waiting_ = true;  // before the look: a read that ends sees this, or is seen
      return files_.readers_.empty() && files_.try_read();
    });
  }
  permit await_resume();

 private:
  open_files& files_;
};

class open_files::close_awaiter : private waiter {
 public:
  close_awaiter(open_files& files, const context* who) noexcept : files_(files), who_(who) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park_after_look(coroutine, files_.mutex_, files_.openers_, [this] { return !begin(); });
  }
  bool await_resume();

 private:
  friend class open_files;

  bool begin();  // false if there is nothing to wait for

  open_files& files_;
  const context* who_;
  bool waits_ = false;   // guarded by the mutex
  bool closed_ = false;  // guarded by the mutex
};

inline open_files::read_awaiter open_files::read_whole() noexcept { return read_awaiter(*this); }
inline open_files::close_awaiter open_files::closed(const context* who) noexcept {
  return {*this, who};
}

}  // namespace lade::detail
