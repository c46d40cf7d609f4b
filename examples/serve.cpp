// A server that decodes images in batches, without a trainer.
//
//   serve PORT [BATCH [WITHIN [TIMEOUT]]]
//
// Listens on 127.0.0.1; 0 is a free port. A request is an image file of up to 16 MiB, an answer
// "ok RED GREEN BLUE", its mean colour instead of the result of a model, or "error" and the reason;
// each in a frame of connection.hpp. A connection may send any number of requests.
//
// Images are decoded in batches of up to BATCH (8): as soon as there are so many, or WITHIN (5)
// milliseconds after the first. A client may take TIMEOUT (10,000) milliseconds each to start a
// request, to send it, and to receive the answer. SIGTERM and SIGINT end the server when it has
// answered what it has received.

#include <lade/io/poll.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "connection.hpp"

using std::chrono::milliseconds;

struct server_options {
  std::uint16_t port = 0;
  std::size_t batch = 8;
  milliseconds within{5};
  milliseconds timeout{10'000};
  std::size_t connections = 64;  // others wait in the queue of the system
  std::size_t request_bytes = std::size_t{16} << 20;
};

// An image that waits to be decoded, and the client's answer.
class request {
 public:
  explicit request(std::string file)
      : file_(std::make_shared<std::string>(std::move(file))), answer_(promise_.get_future()) {}

  lade::sample image() const {
    auto bytes = std::as_writable_bytes(std::span(*file_));
    return lade::sample("image").with_data(lade::buffer(file_, bytes));
  }

  lade::future<std::string> take_answer() { return std::move(answer_); }
  void answer(std::string text) {
    answered_ = true;
    promise_.set_value(std::move(text));
  }
  bool is_answered() const noexcept { return answered_; }

 private:
  std::shared_ptr<std::string> file_;
  lade::promise<std::string> promise_;
  lade::future<std::string> answer_;
  bool answered_ = false;
};

// In the place of a model.
static std::string mean_colour(const lade::tensor& image) {
  auto pixels = static_cast<std::size_t>(image.shape()[0] * image.shape()[1]);
  std::uint64_t sums[3] = {0, 0, 0};
  for (std::size_t i = 0; i < 3 * pixels; ++i) sums[i % 3] += image.data<std::uint8_t>()[i];
  std::string text;
  for (auto sum : sums) text += ' ' + std::to_string(sum / pixels);
  return text;
}

class server {
 public:
  explicit server(const server_options& options)
      : options_(options),
        decode_({.width = 224, .height = 224, .max_pixels = 25'000'000}),
        queue_(2 * options.batch),
        free_(options.connections) {}

  // Returns after a signal, when all requests that have been received are answered. If batches can
  // no longer be answered, all requests end in errors, and the failure is thrown.
  lade::task<> run(int listening, int signals) {
    lade::scope worker(co_await lade::this_context());
    worker.start(answer_until_closed());
    lade::scope clients(co_await lade::this_context());
    lade::scope watching(co_await lade::this_context());
    watching.start(end_after_signal(signals));
    co_await accept_clients(listening, clients);
    queue_.close();  // ends the batch that is being filled
    co_await clients.join();
    co_await worker.join();
    co_await watching.join();
  }

  std::string statistics() const {
    return std::to_string(requests_) + " requests in " + std::to_string(batches_) + " batches";
  }

 private:
  lade::task<> end_after_signal(int signals) {
    co_await lade::io::poll(signals, POLLIN);
    ending_.request_stop();
  }

  lade::task<> accept_clients(int listening, lade::scope& clients) {
    while (true) {
      std::optional<connection> client = co_await unless_ending(accept_client(listening));
      if (!client) break;
      clients.start(serve(std::move(*client)));
    }
  }

  // The result of the work; nothing if the server ends before.
  template <class T>
  lade::task<std::optional<T>> unless_ending(lade::task<T> work) {
    try {
      co_return co_await lade::with_stop(ending_.get_token(), std::move(work));
    } catch (const lade::error& failure) {
      if (failure.code() != lade::errc::stopped) throw;
    }
    co_return std::nullopt;
  }

  // Where descriptors or memory are lacking, the client waits as the server does.
  lade::task<connection> accept_client(int listening) {
    co_await free_.acquire();
    while (true) {
      int fd = or_errno(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
      if (fd >= 0) co_return connection(fd);
      if (fd != -EAGAIN) co_await lade::sleep(milliseconds(10));
      co_await lade::io::poll(listening, POLLIN);
    }
  }

  // A failure ends this connection, and nothing else.
  lade::task<> serve(connection client) {
    std::string failure_text;
    try {
      co_await answer_requests(client);
    } catch (const std::exception& failure) {
      failure_text = failure.what();
    }
    try {
      if (!failure_text.empty() && !client.is_amid_answer())
        co_await say_goodbye(client, failure_text);
    } catch (const std::exception&) {  // the client is gone, or too slow
    }
    free_.release();
  }

  lade::task<> say_goodbye(connection& client, std::string failure_text) {
    co_await send(client, "error " + failure_text);
    co_await unless_ending(lade::with_timeout(options_.timeout, client.finish()));
  }

  lade::task<> answer_requests(connection& client) {
    while (true) {
      bool begins = co_await next_begins(client);
      if (!begins) break;
      auto file = co_await receive(client);
      if (!file) break;
      request next(std::move(*file));
      auto answer = next.take_answer();
      co_await queue_.push(std::move(next));
      auto text = co_await std::move(answer);
      co_await send(client, std::move(text));
    }
  }

  // Whether a further request begins before the time is over and the server ends.
  lade::task<bool> next_begins(const connection& client) {
    try {
      auto ready = co_await unless_ending(lade::with_timeout(options_.timeout, client.readable()));
      co_return ready.has_value();
    } catch (const lade::error& failure) {
      if (failure.code() != lade::errc::timed_out) throw;
    }
    co_return false;
  }

  lade::task<std::optional<std::string>> receive(const connection& client) {
    auto doing = "receive a request";
    auto received = client.receive(options_.request_bytes);
    auto file =
        co_await unless_ending(lade::with_timeout(options_.timeout, std::move(received), doing));
    if (!file) throw lade::error(lade::errc::stopped, doing, "the server ends");
    co_return std::move(*file);
  }

  lade::task<> send(connection& client, std::string text) const {
    co_await lade::with_timeout(options_.timeout, client.send(std::move(text)), "send an answer");
  }

  // A failure ends the server. Requests that wait have their promises broken, later ones are not
  // taken: no client waits for an answer that nobody would send.
  lade::task<> answer_until_closed() {
    try {
      co_await answer_batches();
    } catch (...) {
      ending_.request_stop();
      queue_.close();
      while (queue_.try_pop()) {}
      throw;
    }
  }

  // A batch is filled while two others are decoded.
  lade::task<> answer_batches() {
    lade::semaphore free(2);
    lade::scope batches(co_await lade::this_context());
    while (true) {
      co_await free.acquire();
      auto requests = co_await lade::pop_batch(queue_, options_.batch, options_.within);
      if (requests.empty()) break;
      requests_ += requests.size();
      ++batches_;
      batches.start(answer_and_release(std::move(requests), free));
    }
    co_await batches.join();
  }

  lade::task<> answer_and_release(std::vector<request> requests, lade::semaphore& free) const {
    try {
      co_await answer_batch(requests);
    } catch (const std::exception& failure) {  // breaks the promises of requests without an answer
      std::fprintf(stderr, "serve: %s\n", failure.what());
    }
    free.release();
  }

  // Decodes all images side by side into one tensor.
  lade::task<> answer_batch(std::vector<request>& requests) const {
    auto spec = decode_.spec();
    spec.shape = spec.shape.prepend(static_cast<std::int64_t>(requests.size()));
    lade::tensor images(spec);
    lade::scope decoders(co_await lade::this_context());
    for (std::size_t i = 0; i < requests.size(); ++i)
      decoders.start(decode_into(requests[i], images[static_cast<std::int64_t>(i)]));
    co_await decoders.join();
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (!requests[i].is_answered())
        requests[i].answer("ok" + mean_colour(images[static_cast<std::int64_t>(i)]));
  }

  // A bad image has a separate answer, and does not delay the others.
  lade::task<> decode_into(request& asked, lade::tensor slot) const {
    try {
      decode_(asked.image(), slot);
    } catch (const std::exception& failure) {
      asked.answer(std::string("error ") + failure.what());
    }
    co_return;
  }

  const server_options options_;
  lade::media::decode_image decode_;
  lade::channel<request> queue_;
  lade::semaphore free_;  // connections
  std::stop_source ending_;
  std::size_t requests_ = 0;
  std::size_t batches_ = 0;
};

static int listen_on(std::uint16_t& port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  int on = 1;
  int unsent_bytes = 64 << 10;  // buffer of the system for a client that receives no answers
  if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unsent_bytes, sizeof unsent_bytes) != 0 ||
      ::bind(fd, name, size) != 0 || ::listen(fd, SOMAXCONN) != 0 ||
      ::getsockname(fd, name, &size) != 0)
    lade::raise(errno, "listen on port " + std::to_string(port));
  port = ntohs(address.sin_port);
  return fd;
}

// A descriptor that can be read after a signal, which interrupts nothing.
static int watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before there are other threads
  int fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) lade::raise(errno, "watch signals");
  return fd;
}

static std::optional<server_options> options_from(int argc, char** argv) {
  server_options options;
  long numbers[] = {0, 8, 5, 10'000};
  for (int i = 1; i < argc && i < 5; ++i) numbers[i - 1] = std::atol(argv[i]);
  bool in_range = numbers[0] >= 0 && numbers[0] < 65'536 && numbers[1] > 0 && numbers[1] <= 4096 &&
                  numbers[2] >= 0 && numbers[2] <= 3'600'000 && numbers[3] > 0 &&
                  numbers[3] <= 3'600'000;
  if (argc < 2 || argc > 5 || !in_range) return std::nullopt;
  options.port = static_cast<std::uint16_t>(numbers[0]);
  options.batch = static_cast<std::size_t>(numbers[1]);
  options.within = milliseconds(numbers[2]);
  options.timeout = milliseconds(numbers[3]);
  return options;
}

int main(int argc, char** argv) {
  auto options = options_from(argc, argv);
  if (!options) {
    std::fprintf(stderr, "usage: serve PORT [BATCH [WITHIN [TIMEOUT]]]\n");
    return 2;
  }
  try {
    int signals = watch_signals();
    int listening = listen_on(options->port);
    lade::runtime runtime;
    server server(*options);
    std::printf("listening on 127.0.0.1:%u\n", unsigned{options->port});
    std::fflush(stdout);
    sync_wait(runtime, server.run(listening, signals));
    std::printf("%s\n", server.statistics().c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "serve: %s\n", failure.what());
    return 1;
  }
}
