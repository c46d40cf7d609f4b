#include "multipart_upload.hpp"
#include "s3_listing.hpp"
#include "xml.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/http/error.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

static constexpr std::uint64_t most_parts = 10'000;

// The limits are those of Amazon
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
static std::size_t part_size(const s3_upload_options& options, const std::string& url) {
  constexpr std::uint64_t least = std::uint64_t{5} << 20;
  constexpr std::uint64_t most = std::uint64_t{5} << 30;
  auto refuse = [&](errc code, const std::string& reason) {
    throw error(code, "upload " + without_secrets(url), reason);
  };
  if (options.part_bytes < least || options.part_bytes > most)
    refuse(errc::invalid_argument, "part_bytes must be from 5 MiB to 5 GiB");
  if (options.concurrency < 1 || options.concurrency > most_parts)
    refuse(errc::invalid_argument, "concurrency must be from 1 to 10,000");
  auto needed = options.object_bytes / most_parts + (options.object_bytes % most_parts > 0);
  if (needed > most)
    refuse(errc::limit_exceeded, "object_bytes is more than 10,000 parts can hold");
  return std::max<std::size_t>(options.part_bytes, needed);
}

// Content in parts of equal size; the last one may be shorter.
class part_source {
 public:
  part_source(async_generator<buffer> content, std::size_t part_bytes)
      : content_(std::move(content)), part_bytes_(part_bytes) {}

  // Empty at the end. Copies only chunks that are smaller than a part.
  task<buffer> next() {
    if (!first_.empty()) co_return std::exchange(first_, {});
    co_await refill();
    if (rest_.size() >= part_bytes_) co_return take(part_bytes_);
    auto first = take(rest_.size());
    co_await refill();
    if (rest_.empty()) co_return first;
    auto part = co_await allocate(part_bytes_);
    std::size_t filled = 0;
    for (; !first.empty(); first = take(std::min(rest_.size(), part_bytes_ - filled))) {
      std::memcpy(part.data() + filled, first.data(), first.size());
      filled += first.size();
      co_await refill();
    }
    co_return part.slice(0, filled);
  }

  // Makes a part the next one again.
  void put_back(buffer part) { first_ = std::move(part); }

  // Whether there is no part left.
  task<bool> ended() {
    co_await refill();
    co_return rest_.empty();
  }

 private:
  task<> refill() {
    while (rest_.empty()) {
      auto* chunk = co_await content_.next();
      if (!chunk) co_return;
      rest_ = *chunk;
    }
  }

  buffer take(std::size_t bytes) {
    auto taken = rest_.slice(0, bytes);
    rest_ = bytes == rest_.size() ? buffer() : rest_.slice(bytes, rest_.size() - bytes);
    return taken;
  }

  async_generator<buffer> content_;
  std::size_t part_bytes_;
  buffer rest_;   // the rest of the last chunk
  buffer first_;  // a part that was put back
};

// Starts an upload. If a response was lost, the server may have started another upload whose id is
// unknown here.
static task<response> request_upload_id(multipart_upload& upload) {
  auto request = co_await make_s3_request(upload.store, "POST", upload.url, "uploads");
  request.max_bytes = most_answer_bytes;
  try {
    co_return co_await upload.store->requests.send(std::move(request));
  } catch (const error& failure) {
    if (failure.code().category() != curl_category()) throw;
    throw error(failure.code(), failure.what(), "the server may keep an upload without parts");
  }
}

static task<> begin_upload(multipart_upload& upload) {
  auto answer = co_await request_upload_id(upload);
  const xml_text xml(answer.body().text(), upload.doing);
  upload.id = xml.require("InitiateMultipartUploadResult").value("UploadId");
  if (upload.id.empty())
    throw error(errc::invalid_data, upload.doing, "the response has no UploadId");
}

static task<> send_part(multipart_upload& upload, std::size_t number, buffer part) {
  auto query = fmt::format("partNumber={}&{}", number, upload.query());
  auto request =
      co_await make_s3_request(upload.store, "PUT", upload.url, std::move(query), std::move(part));
  auto answer = co_await upload.store->requests.send(std::move(request));
  if (answer.etag().empty())
    throw error(errc::invalid_data, upload.doing,
                fmt::format("the response has no entity tag of part {}", number));
  std::lock_guard lock(upload.mutex);
  upload.tags[number - 1] = answer.etag();
}

// A part that fails cancels the reading of the content.
static task<> send_part_in_slot(multipart_upload& upload, std::size_t number, buffer part,
                                semaphore& slots, scope& content) {
  try {
    co_await send_part(upload, number, std::move(part));
  } catch (...) {
    upload.fail(std::current_exception());
    content.stop();
  }
  slots.release();
}

// Starts a task for each part.
static task<> start_parts(multipart_upload& upload, part_source& parts, scope& sending,
                          semaphore& slots, scope& content) {
  for (std::size_t number = 1;; ++number) {
    auto part = co_await parts.next();
    if (part.empty()) co_return;
    if (number > most_parts)
      throw error(errc::limit_exceeded, upload.doing,
                  "its content is longer than 10,000 parts; set part_bytes or object_bytes");
    co_await slots.acquire();
    if (upload.is_failing()) co_return;
    {
      std::lock_guard lock(upload.mutex);
      upload.tags.emplace_back();
    }
    upload.bytes += part.size();
    sending.start(send_part_in_slot(upload, number, std::move(part), slots, content));
  }
}

// After a failure, waits for the parts in flight, for a limited time: a server could store a part
// that it receives after the upload was aborted. Ends early if the caller is cancelled.
static task<> stop_late_parts(multipart_upload& upload, scope& sending) {
  try {
    co_await upload.failing;
    co_await sleep(multipart_upload::patience);
    sending.stop();
  } catch (const error& stopped) {
    if (stopped.code() != errc::stopped) throw;
  }
}

static task<> send_parts(multipart_upload& upload, part_source& parts, unsigned concurrency) {
  auto execution = co_await this_context();
  semaphore slots(concurrency);
  scope content(execution);
  scope sending(execution);
  scope watch(execution);
  watch.start(stop_late_parts(upload, sending));
  content.start(start_parts(upload, parts, sending, slots, content));
  try {
    co_await content.join();
  } catch (...) {
    upload.fail(std::current_exception());
  }
  co_await sending.join();
  watch.stop();
  co_await watch.join();
  if (upload.failure) std::rethrow_exception(upload.failure);
}

static task<object_info> send_in_parts(multipart_upload& upload, part_source& parts,
                                       unsigned concurrency) {
  std::exception_ptr failure;
  try {
    co_await send_parts(upload, parts, concurrency);
    auto tag = co_await complete_upload(upload);
    co_return object_info(upload.url, upload.bytes, std::move(tag));
  } catch (...) {
    failure = std::current_exception();
  }
  auto left = co_await abort_upload(upload);
  if (left.empty()) std::rethrow_exception(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const error& first) {
    throw error(first.code(), first.what(), "and its parts may still be on the server: " + left);
  }
}

static task<object_info> upload_object(std::shared_ptr<const s3_store::state> store,
                                       std::string url, async_generator<buffer> content,
                                       s3_upload_options options) {
  require_s3_key("upload", url);
  auto part_bytes = part_size(options, url);
  part_source parts(std::move(content), part_bytes);
  auto first = co_await parts.next();
  bool is_whole = co_await parts.ended();
  if (is_whole) {
    auto bytes = first.size();
    auto request = co_await make_s3_request(store, "PUT", url, {}, std::move(first));
    auto answer = co_await store->requests.send(std::move(request));
    co_return object_info(url, bytes, without_quotes(std::string(answer.etag())));
  }
  multipart_upload upload(std::move(store), std::move(url));
  co_await begin_upload(upload);
  parts.put_back(std::move(first));
  co_return co_await send_in_parts(upload, parts, options.concurrency);
}

task<object_info> s3_store::upload(std::string url, async_generator<buffer> content,
                                   s3_upload_options options) const {
  return upload_object(state_, std::move(url), std::move(content), options);
}

static async_generator<buffer> one_chunk(buffer content) { co_yield content; }

task<object_info> s3_store::upload(std::string url, buffer content,
                                   s3_upload_options options) const {
  options.object_bytes = content.size();
  return upload_object(state_, std::move(url), one_chunk(std::move(content)), options);
}

}  // namespace lade::io::http
