// HTTP: objects of web servers and stores, read and written by the reactor.

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
  // How often a request is sent that fails in a way that another attempt may mend; `when` is not
  // used. 5 attempts if not given; further ones after 100 ms, 200 ms, ...; see lade::retry. Where
  // the server says Retry-After, that long, but not longer than `longest_pause`.
  lade::retry retry = {};
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);

  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(30);  // without a byte

  // `timeout`: of an attempt, from its connection on, waits for memory included; not of streams.
  // `deadline`: of a whole request, with all that it waits for but the memory of the run's budget:
  // attempts and their pauses, permits, tokens, signatures, names; of a stream, until its first
  // chunk is there, and once more where it broke off. A stream that goes on is only ended by
  // `stall_timeout`, for its consumer sets the pace. 0: none.
  std::chrono::milliseconds timeout = {};
  std::chrono::nanoseconds deadline = {};

  // Requests that run at a time, to one host and to all. Others wait. A stream counts until its
  // first bytes are there, so that its consumer may send requests.
  unsigned connections_per_host = 128;
  unsigned requests = 512;

  // Connections are kept for requests that follow: to a host as many as were needed side by side,
  // and so at most `connections_per_host`, on each reactor; of all clients at most 128 on a
  // reactor, or as many as it has used at a time. One that has had no request for that long, at
  // least a second, is not used again, and closed when another request begins, or when the reactor
  // has had none for that long. Nor is one used that is older than 10 minutes: the name may lead
  // elsewhere.
  std::chrono::seconds idle_timeout = std::chrono::seconds(60);

  // Bodies that are received at a time, of all hosts, each counted with its length. Others wait in
  // the order of their arrival; a body that is longer is received alone. Of a stream the chunk
  // counts that is being received; a body of unknown length, with its memory.
  std::uint64_t bytes_in_flight = std::uint64_t{1} << 30;

  unsigned redirects = 5;

  // Longer objects are read in parts of 8 MiB, eight at a time, where the server takes ranges and
  // says a strong entity tag. The first response is left then, and its connection closed.
  std::uint64_t divide_above = std::uint64_t{16} << 20;

  // Bodies that are longer, or whose length the server does not say and which become longer, are
  // refused. Streams may be of any length: their memory is that of a chunk.
  std::uint64_t max_bytes = std::uint64_t{16} << 30;

  // Whether the bodies of whole objects are compared with the checksums that servers send with
  // them; see `client`.
  bool verify_checksums = true;

  // HTTP/2 where a server offers it over TLS. It saves connections, not CPU time: requests share
  // one from the host's first answer on. libcurl may buffer up to 32 MiB for each response whose
  // memory has to be waited for.
  bool http2 = false;

  // Asks for compressed responses, and decompresses them, up to max_bytes. Not those of ranges. A
  // stream that is decompressed cannot be continued.
  bool decompress = false;

  // TLS. Certificates are verified, against those of the system if neither is given.
  std::string_view ca_file = {};
  std::string_view ca_directory = {};
  std::string_view certificate = {};  // of the client, PEM
  std::string_view private_key = {};  // of that certificate, if it is not in the same file
  bool verify = true;                 // false accepts any certificate: anybody may be the server

  // As curl has them: empty means the environment (http_proxy, https_proxy, no_proxy).
  std::string_view proxy = {};
  std::string_view no_proxy = {};

  // A file of user names and passwords by host, in the format of ~/.netrc; "~/.netrc" itself if
  // `netrc` is set and no file given.
  bool netrc = false;
  std::string_view netrc_file = {};

  std::string_view user_agent = "lade";
};

// Names and values.
using header_list = std::vector<std::pair<std::string, std::string>>;

// What a server has answered.
class response {
 public:
  response(std::string url, int status, header_list headers, buffer body)
      : url_(std::move(url)),
        status_(status),
        headers_(std::move(headers)),
        body_(std::move(body)) {}

  const std::string& url() const noexcept { return url_; }  // behind redirects, without secrets
  int status() const noexcept { return status_; }
  const header_list& headers() const noexcept { return headers_; }
  const buffer& body() const noexcept { return body_; }

  // The value of a header, whatever the case of its name; empty if there is none.
  std::string_view header(std::string_view name) const noexcept;

  // The entity tag with its quotes; empty if there is none.
  std::string_view etag() const noexcept { return header("etag"); }

  // The length of the whole object, also where the response is a part of it; nothing if unknown.
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

// A request for send(): what get, head and put are made of.
class request {
 public:
  // `method`: GET, HEAD, PUT, POST or DELETE. Throws error(invalid_argument) for others, and for a
  // URL with a zero byte.
  request(std::string_view method, std::string url);

  const std::string& method() const noexcept { return method_; }
  const std::string& url() const noexcept { return url_; }

  // The headers of the program itself. None of them is sent to another host than the URL's.
  header_list headers;

  buffer body;             // of a PUT or POST
  byte_range range;        // of a GET
  std::string if_match;    // an entity tag: a GET or PUT fails with 412 if the object has another
  bool may_repeat = true;  // whether another attempt does no harm

  // Awaited before each attempt: adds headers that depend on the time, such as a signature, to
  // those that it is given. They are not sent to another host either. The references are valid
  // until the task has ended.
  std::function<task<>(const request&, header_list&)> sign;

  // Called with the reason of a refusal, 400, 401 or 403, and when the refused attempt began:
  // returns whether another, for which `sign` is awaited again, may be accepted. As of `sign`,
  // copies of a request share what it refers to, and may be sent side by side.
  using time = std::chrono::system_clock::time_point;
  std::function<bool(std::string_view why, time begun)> renew;

 private:
  std::string method_;
  std::string url_;
};

struct client_statistics {
  std::uint64_t requests = 0;  // attempts, redirects included
  std::uint64_t retries = 0;
  std::uint64_t failures = 0;  // requests that were given up
  std::uint64_t bytes_in = 0;  // of bodies
  std::uint64_t bytes_out = 0;
  std::uint64_t connections = 0;  // that were made
  std::uint64_t verified = 0;     // bodies that were compared with a checksum
};

// The same for Prometheus, lade_http_..., with labels that tell clients apart; see
// metrics_server::add.
void add(metrics& into, const client_statistics& statistics, const metric_labels& labels = {});

// Sends requests over kept connections. A small value: copies share limits, options, and
// credentials. Any thread. Its functions require a runtime.
//
//   lade::io::http::client web;
//   auto page = co_await web.get("https://example.com/data.bin");
//   auto part = co_await web.get(url, {.offset = 4096, .bytes = 512});
//
// Errors. Every function throws `error` naming the method, the URL without secrets, the status with
// the first line of the answer or what libcurl says, and the attempt: "get https://host/a: 404 Not
// Found: no such key (attempt 1 of 5)". Its code is status_code(404), or one of curl_category().
// error(stopped) if the caller is cancelled, error(timed_out) at the deadline.
//
// Attempts. Connection errors, stalls, bodies that end early, and the statuses 408, 425, 429 and
// 5xx are tried again. If a body has ended early and its entity tag is strong, the next attempt
// asks for the rest of the same entity (Range, If-Match); where the object has changed meanwhile it
// is error(changed), not a mixture. Without a strong tag it begins anew.
//
// Checksums. The body of a GET of a whole object is compared with the checksum that the response
// states: CRC32C, CRC64NVME, SHA-256 or MD5, the first of them, in x-amz-checksum-*, x-goog-hash,
// Repr-Digest, Digest or Content-MD5. A body with another one is an attempt that has failed, and at
// last error(invalid_data). Not compared are parts, checksums of checksums (those of objects that
// were uploaded in parts, "...-3"), and bodies that were decompressed. Ask an object store for
// checksums where it does not send them by itself: "x-amz-checksum-mode: ENABLED" for S3.
//
// Redirects are followed for GET and HEAD, not from https to http. Headers of the program,
// signatures and credentials are sent to the URL's own scheme, host and port only.
class client {
 public:
  client() : client(client_options{}) {}

  // Throws error(invalid_argument) that names an option that cannot work.
  explicit client(const client_options& options);

  // An object or a part of it, in memory of the caller's pool. The status is 200 or 203, of a part
  // 206, and 416 without a body for a part of an empty object; all others are errors. Throws
  // error(invalid_data) if the server sends another range than asked for, or the whole object
  // instead, and error(invalid_argument) for a range of no bytes or beyond all objects.
  task<response> get(std::string url, byte_range range = {}) const;

  // The same without the body.
  task<response> head(std::string url) const;

  // Writes an object.
  task<response> put(std::string url, buffer content) const;

  task<response> send(request what) const;

  // The part of an object that is the range of a GET, with what its server says of the whole: what
  // stores and caches are made of; see store::read_part. A whole object is compared with the
  // checksum that is stated for it. Servers state none for parts, so the beginning of an object is
  // asked for without a range as long as objects turn out to be no longer, if that is more than
  // 4096 bytes; a small one that came by a range is asked for once more. A part that
  // begins at the end of the object or behind it is empty: where the server refuses it with 416,
  // the first byte is asked for, to learn the length. Throws error(unsupported) if the server does
  // not say how long the object is.
  task<object_part> get_part(request what) const;

  // The body of a GET in chunks of at most `chunk_bytes`, at least 128 KiB. The connection is read
  // at the pace of the consumer: libcurl holds back at most what the system has received. What
  // breaks off is continued as described above; without a strong entity tag that is an error, since
  // the bytes before have been given away. So is a wrong checksum: in place of the end of the
  // stream, its consumer gets error(invalid_data). Over HTTP/1.1.
  async_generator<buffer> stream(std::string url, stream_options options = {}) const;
  async_generator<buffer> stream(request what, stream_options options = {}) const;

  // An object for random access, by ranges of the entity that it is now. Reads throw
  // error(changed) once it is another: told by a strong entity tag, otherwise by its weak one
  // or time of modification, and its length. Throws error(unsupported) if the server does not say
  // its length or takes no ranges.
  task<std::shared_ptr<const byte_reader>> open(std::string url) const;
  task<std::shared_ptr<const byte_reader>> open(request what) const;

  // For all requests to a host: calls `token` before a request and sends "Authorization: Bearer
  // TOKEN"; after a 401 it is called once more, with true. Before the first request only. The
  // function may send requests itself; a copy of this client in it would keep both alive for ever,
  // a reference does not.
  //
  // `host`: "example.com", for all its ports, or "example.com:443", for one of them, whether or not
  // URLs say it, "[::1]:80"; in any case, and without a scheme. Throws error(invalid_argument) for
  // what is no such name, and for no function.
  using token_function = std::function<task<std::string>(bool was_refused)>;
  void authorize(std::string host, token_function token);

  client_statistics stats() const;

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace lade::io::http
