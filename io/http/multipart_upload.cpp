#include "multipart_upload.hpp"

#include "s3_listing.hpp"
#include "xml.hpp"

#include <lade/error.hpp>
#include <lade/io/http/error.hpp>
#include <lade/printable.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>

#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace lade::io::http {

static std::string escaped_xml(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

static std::string completion_of(const multipart_upload& upload) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < upload.tags.size(); ++i)
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                       escaped_xml(upload.tags[i]));
  return xml + "</CompleteMultipartUpload>";
}

// Whether a completion may be retried after this error code. Stores answer 200 before they finish,
// and report a failure in the body.
static bool is_passing(std::string_view code) noexcept {
  return code == "InternalError" || code == "SlowDown" || code == "ServiceUnavailable" ||
         code == "OperationAborted";
}

// After a completion whose response was lost: returns the entity tag of the object if it was
// completed, else an empty text. The tag is the MD5 of the parts' MD5s, with their number.
static task<std::string> tag_of_completed(multipart_upload& upload) {
  auto expected = multipart_tag(upload.tags);
  auto request = co_await make_s3_request(upload.store, "HEAD", upload.url);
  auto found = co_await upload.store->requests.send(std::move(request));
  auto tag = without_quotes(std::string(found.etag()));
  co_return !expected.empty() && tag == expected ? tag : std::string();
}

// One attempt to complete an upload. Returns the object's entity tag, or nothing if it should be
// retried.
static task<std::optional<std::string>> try_to_complete(multipart_upload& upload, buffer list) {
  auto request = co_await make_s3_request(upload.store, "POST", upload.url, upload.query(), list);
  request.max_bytes = most_answer_bytes;
  request.headers.emplace_back("Content-Type", "application/xml");
  bool is_unknown = false;
  std::exception_ptr failure;
  std::string body;
  try {
    auto answer = co_await upload.store->requests.send(std::move(request));
    body = answer.body().text();
  } catch (const error& thrown) {
    is_unknown = thrown.code() == status_code(404);
    failure = std::current_exception();
  }
  if (is_unknown) {
    auto tag = co_await tag_of_completed(upload);
    if (!tag.empty()) co_return tag;
  }
  if (failure) std::rethrow_exception(failure);
  xml_text xml(body, upload.doing);
  auto made = xml.find("CompleteMultipartUploadResult");
  if (made) co_return without_quotes(made->value("ETag"));
  auto code = xml.value("Code");
  if (is_passing(code)) co_return std::nullopt;
  if (code.empty()) xml.refuse("the server does not confirm that it is complete");
  xml.refuse(printable(code + ", " + xml.value("Message")));
}

task<std::string> complete_upload(multipart_upload& upload) {
  constexpr unsigned attempts = 5;
  auto text = completion_of(upload);
  buffer list(text.size());
  std::memcpy(list.data(), text.data(), text.size());
  for (unsigned attempt = 1;; ++attempt) {
    auto tag = co_await try_to_complete(upload, list);
    if (tag) co_return *std::move(tag);
    if (attempt == attempts)
      throw error(errc::failed, upload.doing, "the server could not complete it (attempt 5 of 5)");
    co_await sleep(std::chrono::milliseconds(100) * (1 << attempt));
  }
}

// Whether the server still has parts of an aborted upload. False if it refuses to answer.
static task<bool> has_parts(multipart_upload& upload) {
  auto request = co_await make_s3_request(upload.store, "GET", upload.url, upload.query());
  request.max_bytes = most_answer_bytes;
  try {
    auto answer = co_await upload.store->requests.send(std::move(request));
    const xml_text xml(answer.body().text(), upload.doing);
    co_return xml.require("ListPartsResult").find("Part").has_value();
  } catch (const error& failure) {
    if (failure.code().category() != status_category()) throw;
    co_return false;
  }
}

// Aborts until no parts are left: the server may store a part whose response was lost after it has
// aborted the upload
// (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html).
static task<> remove_parts(multipart_upload& upload) {
  for (auto pause = std::chrono::milliseconds(50);; pause *= 2) {
    auto request = co_await make_s3_request(upload.store, "DELETE", upload.url, upload.query());
    co_await upload.store->requests.send(std::move(request));
    bool is_left = co_await has_parts(upload);
    if (!is_left) co_return;
    co_await sleep(pause);
  }
}

task<std::string> abort_upload(multipart_upload& upload) {
  auto execution = co_await this_context();
  execution.stop = {};
  try {
    auto abort = with_timeout(multipart_upload::patience, remove_parts(upload), "abort an upload");
    co_await with_context(execution, std::move(abort));
  } catch (const error& failure) {
    if (failure.code() != status_code(404)) co_return failure.what();
  }
  co_return std::string();
}

}  // namespace lade::io::http
