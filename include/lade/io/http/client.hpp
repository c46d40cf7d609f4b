// An HTTP client that runs on the reactor: reads and writes objects of web servers and stores.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/failure.hpp>
#include <lade/io/http/error.hpp>
#include <lade/metrics.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

class object_part;  // lade/io/store.hpp

}  // namespace lade::io

namespace lade::io::http {

struct client_options {
  // Attempts at a request that fails with a temporary error; `when` is not used. The default is 5
  // attempts, with pauses of 100 ms, 200 ms, ...; see lade::retry. If the server sends Retry-After,
  // the pause has that length, but at most `longest_pause`.
  lade::retry retry = {};
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);

  // `stall_timeout`: an attempt fails after this time without a byte. A stall also closes the
  // connection, so a dead connection of HTTP/2 is detected: the requests that share it fail and may
  // be retried. 0: none.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(30);

  // `timeout`: limit of one attempt, from the start of its connection, including waits for memory;
  // does not apply to streams.
  // `deadline`: limit of a whole request: attempts and the pauses between them, permits, tokens,
  // signatures and name lookups; waits for the memory of the run's budget are excluded. For a
  // stream, it applies until the first chunk, and again after each interruption. An established
  // stream is limited by `stall_timeout` only, because its consumer sets the pace.
  // 0: none.
  std::chrono::milliseconds timeout = {};
  std::chrono::nanoseconds deadline = {};

  // Requests in flight, to one host and to all hosts. Further requests wait. A stream counts until
  // its first bytes arrive, so its consumer may send requests.
  unsigned connections_per_host = 128;
  unsigned requests = 512;

  // How long an idle connection is kept for further requests, at least a second. An expired
  // connection is closed when the next request starts, or when the reactor has had no request for
  // that time. Connections older than 10 minutes are not reused, because the address of the name
  // may have changed.
  //
  // A reactor keeps as many connections to a host as were used concurrently, at most
  // `connections_per_host`. All clients together keep at most 128 connections for each reactor, or
  // as many as it has used concurrently.
  std::chrono::seconds idle_timeout = std::chrono::seconds(60);

  // Bytes of the bodies in flight, of all hosts. Further bodies wait in first-in, first-out order;
  // a body that exceeds the limit is received alone. A body counts with its length, or with its
  // memory if the length is unknown; a stream counts with its current chunk.
  std::uint64_t bytes_in_flight = std::uint64_t{1} << 30;

  unsigned redirects = 5;  // maximum number of redirects of a request

  // Objects with more bytes are read in parts of 8 MiB, eight at a time, if the server supports
  // ranges and sends a strong entity tag. The first response is then abandoned, and its connection
  // closed.
  std::uint64_t divide_above = std::uint64_t{16} << 20;

  // Maximum size of a body in bytes, also if the server does not send its length. Longer bodies are
  // refused. Does not apply to streams, whose memory is one chunk.
  std::uint64_t max_bytes = std::uint64_t{16} << 30;

  // Whether the bodies of whole objects are verified with the checksums that servers send; see
  // `client`.
  bool verify_checksums = true;

  // HTTP/2 if a server offers it over TLS. It saves connections, not CPU time: after the first
  // response of a host, requests share one connection. libcurl may buffer up to 32 MiB for each
  // response that waits for memory.
  bool http2 = false;

  // Requests compressed responses, and decompresses them, up to max_bytes. Ranges are never
  // compressed. A stream that is decompressed cannot be continued after an interruption.
  bool decompress = false;

  // TLS. `ca_file` and `ca_directory`: the certificate authorities to trust; if both are empty,
  // those of the system.
  std::string_view ca_file = {};
  std::string_view ca_directory = {};
  std::string_view certificate = {};  // of the client, PEM
  std::string_view private_key = {};  // of the certificate, unless in the same file
  bool verify = true;                 // false: any certificate is accepted, from anybody

  // In the syntax of curl. If empty: http_proxy, https_proxy, all_proxy and no_proxy of the
  // environment, read when the client is constructed.
  std::string_view proxy = {};
  std::string_view no_proxy = {};

  // A file with user names and passwords by host, in the format of ~/.netrc. If `netrc` is set and
  // `netrc_file` is empty: "~/.netrc".
  bool netrc = false;
  std::string_view netrc_file = {};

  std::string_view user_agent = "lade";
};

// Names and values.
using header_list = std::vector<std::pair<std::string, std::string>>;

// The response of a server. A value; copies share the memory of the body.
class response {
 public:
  response(std::string url, int status, header_list headers, buffer body)
      : url_(std::move(url)),
        status_(status),
        headers_(std::move(headers)),
        body_(std::move(body)) {}

  const std::string& url() const noexcept { return url_; }  // after redirects, without secrets
  int status() const noexcept { return status_; }
  const header_list& headers() const noexcept { return headers_; }
  const buffer& body() const noexcept { return body_; }

  // The value of a header; empty if there is none. The case of `name` is ignored.
  std::string_view header(std::string_view name) const noexcept;

  // The entity tag with its quotes; empty if there is none.
  std::string_view etag() const noexcept { return header("etag"); }

  // The length of the whole object, also if the response is a part of it; nullopt if unknown.
  std::optional<std::uint64_t> object_bytes() const noexcept;

 private:
  std::string url_;
  int status_;
  header_list headers_;
  buffer body_;
};

// A part of an object.
struct byte_range {
  static constexpr std::uint64_t to_end = ~std::uint64_t{0};

  std::uint64_t offset = 0;
  std::uint64_t bytes = to_end;

  bool is_all() const noexcept { return offset == 0 && bytes == to_end; }
};

// A request for send(). get(), head() and put() are shorthands for common requests.
class request {
 public:
  // `method`: GET, HEAD, PUT, POST or DELETE. Throws error(invalid_argument) for any other method,
  // and for a URL with a zero byte.
  request(std::string_view method, std::string url);

  const std::string& method() const noexcept { return method_; }
  const std::string& url() const noexcept { return url_; }

  // Additional headers. They are sent to the host of the URL only, not to targets of redirects.
  header_list headers;

  buffer body;           // of a PUT or POST
  byte_range range;      // of a GET
  std::string if_match;  // entity tag; fails with 412 if the object has another one
  std::uint64_t max_bytes = ~std::uint64_t{0};  // as client_options::max_bytes, if less
  bool may_repeat;  // whether it is idempotent and may be retried; false for a POST by default

  // Awaited before each attempt: appends headers that depend on the time, such as a signature, to
  // the list. They are sent to the host of the URL only. The references are valid until the task
  // completes.
  //
  // Copies of a request share the state that `sign` and `renew` refer to. They may be in flight
  // concurrently.
  std::function<task<>(const request&, header_list&)> sign;

  // Called after status 400, 401 or 403. `why`: the reason; `start`: the start time of the attempt.
  // Returns true if another attempt may succeed; `sign` is then awaited again.
  using time = std::chrono::system_clock::time_point;
  std::function<bool(std::string_view why, time start)> renew;

 private:
  std::string method_;
  std::string url_;
};

struct client_statistics {
  std::uint64_t requests = 0;  // attempts, redirects included
  std::uint64_t retries = 0;
  std::uint64_t failures = 0;  // requests whose last attempt failed
  std::uint64_t bytes_in = 0;  // bytes of bodies
  std::uint64_t bytes_out = 0;
  std::uint64_t connections = 0;  // opened connections
  std::uint64_t verified = 0;     // bodies whose checksum was verified
};

// Adds the statistics as metrics of Prometheus, lade_http_.... `labels` distinguish clients; see
// metrics_server::add.
void add(metrics& into, const client_statistics& of, const metric_labels& labels = {});

// Sends requests over persistent connections. A small value: copies share limits, options, and
// credentials. Any thread may use it. All tasks and generators require a runtime.
//
//   lade::io::http::client web;
//   auto page = co_await web.get("https://example.com/data.bin");
//   auto part = co_await web.get(url, {.offset = 4096, .bytes = 512});
//
// Errors. Every function throws `error` naming the method, the URL without secrets, the reason and
// the attempt: "get https://host/a: 404 Not Found: no such key (attempt 1 of 5)". The reason is the
// status with the first line of the response, or the message of libcurl. The code is
// status_code(404), or one of curl_category(). Throws error(stopped) if the caller is cancelled,
// and error(timed_out) at the deadline.
//
// Retries. Another attempt follows connection errors, stalls, bodies that end early, and the
// statuses 408, 425, 429 and 5xx. If a body ends early and its entity tag is strong, the next
// attempt requests the rest of the same entity (Range, If-Match). If the object has changed, that
// is error(changed), never a mixture. Without a strong tag the attempt starts over.
//
// Checksums. The body of a GET of a whole object is verified with the checksum that the response
// states: the first of CRC32C, CRC64NVME, SHA-256 and MD5, in x-amz-checksum-*, x-goog-hash,
// Repr-Digest, Digest or Content-MD5. A mismatch fails the attempt; after the last one it is
// error(invalid_data). Not verified: parts, checksums of checksums (of objects that were uploaded
// in parts, "...-3"), and decompressed bodies. Some object stores send checksums only if a header
// requests them: "x-amz-checksum-mode: ENABLED" for S3.
//
// Redirects are followed for GET and HEAD, but not from https to http. Headers of the program,
// signatures, credentials and the client certificate are sent to the scheme, host and port of the
// URL only.
class client {
 public:
  client() : client(client_options{}) {}

  // Throws error(invalid_argument) naming the option for a value out of range.
  explicit client(const client_options& options);

  // Returns an object or a part of it, in memory of the caller's pool. The status is 200 or 203,
  // 206 for a part, and 416 without a body for a part of an empty object; any other status is an
  // error. Throws error(invalid_data) if the server sends another range, or the whole object
  // instead. Throws error(invalid_argument) for a range of no bytes or beyond the largest offset.
  task<response> get(std::string url, byte_range range = {}) const;

  // The same without the body.
  task<response> head(std::string url) const;

  // Writes an object by one request.
  task<response> put(std::string url, buffer content) const;

  // Sends a request with its headers, range and body. Throws error(invalid_argument) for a range or
  // a body that requests of the method do not have.
  task<response> send(request what) const;

  // Returns the range of a GET, with the length and the entity tag of the whole object. Stores and
  // caches implement store::read_part with it.
  //
  // Servers send no checksum for a range, but a whole object is verified. So a range of more than
  // 4096 bytes at the beginning is requested as the whole object, until an object turns out to be
  // longer. A small object that was fetched by a range is requested once more.
  //
  // A part at or beyond the end of the object is empty. If the server refuses such a part with 416,
  // the first byte is requested for the length. Throws error(unsupported) if the server does not
  // send the length of the object, and error(invalid_argument) if the request is not a GET.
  task<object_part> get_part(request what) const;  // object_part: <lade/io/store.hpp>

  // Yields the body of a GET in chunks of at most `chunk_bytes`, but not less than 128 KiB. The
  // connection is read at the pace of the consumer: libcurl buffers at most the bytes that the
  // system has received. Uses HTTP/1.1.
  //
  // After an interruption, the stream continues with the rest of the entity, see above. Without a
  // strong entity tag an interruption is an error, because the consumer has the previous bytes. If
  // the checksum is wrong, the stream throws error(invalid_data) instead of ending. Throws
  // error(invalid_argument) if the request is not a GET or has a range, because `options` state
  // where to begin.
  async_generator<buffer> stream(std::string url, stream_options options = {}) const;
  async_generator<buffer> stream(request what, stream_options options = {}) const;

  // Opens an object for random access. Each read is a range request. Reads throw error(changed) if
  // the object is replaced after it was opened. A replacement is detected by the strong entity tag,
  // or else by the weak tag or the time of modification, and by the length. Throws
  // error(unsupported) if the server does not state the length or does not support ranges. Throws
  // error(invalid_argument) if the request is not a GET or has a range.
  task<std::shared_ptr<const byte_reader>> open(std::string url) const;
  task<std::shared_ptr<const byte_reader>> open(request what) const;

  // Adds "Authorization: Bearer TOKEN" to all requests to `host`, also to those over http, where
  // others can read it. Call it before the first request only. `token` is called before each
  // attempt; after a 401 it is called once more, with true. It may send requests by a reference to
  // this client. It must not own a copy of the client, which would be a cycle that is never freed.
  //
  // `host`: "example.com" for all its ports; "example.com:443" or "[::1]:80" for one port, also if
  // the URL omits it. Without a scheme; case is ignored. Throws error(invalid_argument) for any
  // other text, and for an empty function.
  using token_function = std::function<task<std::string>(bool was_refused)>;
  void authorize(std::string host, token_function token);

  client_statistics stats() const;

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace lade::io::http
