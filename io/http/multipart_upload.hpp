// Uploads to S3 in parts
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html), and how they end.

#pragma once

#include "s3_state.hpp"
#include "sigv4.hpp"

#include <lade/event.hpp>
#include <lade/task.hpp>
#include <lade/url.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lade::io::http {

// An upload that a server knows by its id.
struct multipart_upload {
  multipart_upload(std::shared_ptr<const s3_store::state> in, std::string named)
      : store(std::move(in)), url(std::move(named)), doing("upload " + without_secrets(url)) {}

  std::string query() const { return "uploadId=" + percent_encoded(id, false); }

  static constexpr auto patience = std::chrono::seconds(10);  // with what it leaves behind

  const std::shared_ptr<const s3_store::state> store;
  const std::string url;
  const std::string doing;  // for errors
  std::string id;
  std::uint64_t bytes = 0;

  // The first failure, of a part or of the content, is that of the upload.
  void fail(std::exception_ptr first_failure) {
    std::lock_guard lock(mutex);
    if (!failure) failure = std::move(first_failure);
    failing.set();
  }
  bool is_failing() {
    std::lock_guard lock(mutex);
    return failure != nullptr;
  }

  std::mutex mutex;
  std::vector<std::string> tags;  // of the parts; guarded by mutex while they are sent
  std::exception_ptr failure;     // guarded by mutex
  event failing;                  // once there is a failure
};

// Makes an object of the parts. Returns its entity tag.
task<std::string> complete_upload(multipart_upload& upload);

// Removes the parts, also where the upload itself is stopped. Returns why that failed; empty if it
// did not.
task<std::string> abort_upload(multipart_upload& upload);

}  // namespace lade::io::http
