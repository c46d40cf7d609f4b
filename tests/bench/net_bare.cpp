// The limit of net_bench: libcurl's multi_socket interface on one-shot polls of an io_uring, one
// thread, one easy handle and one piece of memory for each request at a time.

#include <curl/curl.h>
#include <liburing.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <optional>
#include <unordered_map>

#include "bench.hpp"
#include "net.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

// A socket that libcurl wants to know of. A poll in flight has the socket's number and generation.
struct watched {
  unsigned wanted = 0;
  std::uint32_t generation = 0;
  bool is_polled = false;
};

struct request {
  CURL* easy = nullptr;
  std::byte* memory = nullptr;
  std::size_t filled = 0;
};

class loop {
 public:
  loop(const bench::objects& wanted, unsigned flags)
      : all_(wanted.requests()), multi_(curl_multi_init()), requests_(wanted.depth) {
    if (::io_uring_queue_init(4096, &ring_, flags) != 0) bench::fail("no io_uring");
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &loop::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &loop::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1024L);
    auto most = wanted.by_ranges ? std::size_t{8} << 20 : wanted.object_bytes();
    for (auto& each : requests_) prepare(each, most);
  }

  std::size_t run() {
    for (auto& each : requests_) begin(each);
    while (running_ > 0) {
      wait();
      if (deadline_ && *deadline_ <= clock_type::now()) {
        deadline_.reset();
        act(CURL_SOCKET_TIMEOUT, 0);
      }
      finish_all();
    }
    return bytes_;
  }

 private:
  static std::size_t on_body(char* data, std::size_t, std::size_t bytes, void* self) {
    auto& to = *static_cast<request*>(self);
    std::memcpy(to.memory + to.filled, data, bytes);
    to.filled += bytes;
    return bytes;
  }

  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
    auto& here = *static_cast<loop*>(self);
    auto& found = here.sockets_[fd];
    unsigned wanted = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) wanted |= POLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) wanted |= POLLOUT;
    if (what == CURL_POLL_REMOVE) wanted = 0;
    if (found.is_polled && found.wanted != wanted) {
      auto* entry = here.entry();
      ::io_uring_prep_poll_remove(entry, tag(fd, found.generation));
      ::io_uring_sqe_set_data64(entry, 0);
      ++found.generation;
      found.is_polled = false;
    }
    found.wanted = wanted;
    here.poll(fd);
    return 0;
  }

  static int on_timer(CURLM*, long ms, void* self) {
    auto& deadline = static_cast<loop*>(self)->deadline_;
    deadline.reset();
    if (ms >= 0) deadline = clock_type::now() + std::chrono::milliseconds(ms);
    return 0;
  }

  static std::uint64_t tag(int fd, std::uint32_t generation) {
    return (std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd)) + 1;
  }

  io_uring_sqe* entry() {
    auto* found = ::io_uring_get_sqe(&ring_);
    if (found) return found;
    ::io_uring_submit(&ring_);
    return ::io_uring_get_sqe(&ring_);
  }

  void poll(int fd) {
    auto& found = sockets_[fd];
    if (found.wanted == 0 || found.is_polled) return;
    auto* to = entry();
    ::io_uring_prep_poll_add(to, fd, found.wanted);
    ::io_uring_sqe_set_data64(to, tag(fd, found.generation));
    found.is_polled = true;
  }

  void prepare(request& made, std::size_t most) {
    made.memory = bench::huge_memory(most);
    made.easy = curl_easy_init();
    curl_easy_setopt(made.easy, CURLOPT_PRIVATE, &made);
    curl_easy_setopt(made.easy, CURLOPT_WRITEFUNCTION, &loop::on_body);
    curl_easy_setopt(made.easy, CURLOPT_WRITEDATA, &made);
    curl_easy_setopt(made.easy, CURLOPT_BUFFERSIZE, 128L << 10);
    curl_easy_setopt(made.easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(made.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(made.easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(made.easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }

  void begin(request& next) {
    if (next_ == all_.size()) return;
    auto& what = all_[next_++];
    next.filled = 0;
    curl_easy_setopt(next.easy, CURLOPT_URL, what.url.c_str());
    if (what.bytes > 0) {
      auto range = std::to_string(what.offset) + "-" + std::to_string(what.offset + what.bytes - 1);
      curl_easy_setopt(next.easy, CURLOPT_RANGE, range.c_str());
    }
    curl_multi_add_handle(multi_, next.easy);
    ++running_;
  }

  void act(curl_socket_t fd, int events) {
    int running = 0;
    curl_multi_socket_action(multi_, fd, events, &running);
  }

  void wait() {
    io_uring_cqe* first = nullptr;
    if (deadline_) {
      auto left = std::max(*deadline_ - clock_type::now(), clock_type::duration(0));
      __kernel_timespec limit{};
      limit.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
      limit.tv_nsec = (left % std::chrono::seconds(1)).count();
      ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
    } else {
      ::io_uring_submit_and_wait(&ring_, 1);
    }
    io_uring_cqe* found[256];
    unsigned count = ::io_uring_peek_batch_cqe(&ring_, found, 256);
    for (unsigned i = 0; i < count; ++i) ready_.emplace_back(found[i]->user_data, found[i]->res);
    ::io_uring_cq_advance(&ring_, count);
    for (auto [data, result] : ready_)
      if (data != 0) handle(data - 1, result);
    ready_.clear();
  }

  void handle(std::uint64_t data, int result) {
    int fd = static_cast<int>(data & 0xffffffff);
    auto& found = sockets_[fd];
    if (found.generation != data >> 32) return;
    found.is_polled = false;
    if (result < 0) return;
    int events = 0;
    if (result & (POLLIN | POLLHUP | POLLERR)) events |= CURL_CSELECT_IN;
    if (result & POLLOUT) events |= CURL_CSELECT_OUT;
    act(fd, events);
    poll(fd);
  }

  void finish_all() {
    int left = 0;
    while (auto* message = curl_multi_info_read(multi_, &left)) {
      request* ended = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &ended);
      if (message->data.result != CURLE_OK) bench::fail(curl_easy_strerror(message->data.result));
      bytes_ += ended->filled;
      --running_;
      curl_multi_remove_handle(multi_, ended->easy);
      begin(*ended);
    }
  }

  std::vector<bench::object_request> all_;
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  std::size_t bytes_ = 0;
  io_uring ring_;
  CURLM* multi_;
  std::vector<request> requests_;
  std::unordered_map<int, watched> sockets_;
  std::vector<std::pair<std::uint64_t, int>> ready_;
  std::optional<clock_type::time_point> deadline_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Reads objects of a web server with libcurl alone.");
  auto wanted = bench::parse_objects(options);
  options.done();

  curl_global_init(CURL_GLOBAL_DEFAULT);
  constexpr unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                             IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                             IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP;
  loop all(wanted, flags);
  bench::stopwatch clock;
  if (all.run() != wanted.count * wanted.object_bytes()) bench::fail("not all bytes came");
  bench::report_objects("net_bare", wanted, clock).print();
}
