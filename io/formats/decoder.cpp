#include <lade/error.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "decoder.hpp"

namespace lade::detail {

[[noreturn]] static void refuse_compressed(const std::string& name, const std::string& reason) {
  throw error(errc::invalid_data, "decompress " + name, reason);
}

// Decodes the members of a gzip file (RFC 1952).
class gzip_decoder final : public decoder {
 public:
  explicit gzip_decoder(std::string name) : name_(std::move(name)) {
    if (inflateInit2(&zlib_, 16 + MAX_WBITS) != Z_OK)
      throw error(errc::failed, "decompress " + name_, "zlib cannot be started");
  }
  gzip_decoder(const gzip_decoder&) = delete;
  ~gzip_decoder() override { inflateEnd(&zlib_); }

  bool may_end() const noexcept override { return ended_; }

  progress decode(std::span<const std::byte> in, std::span<std::byte> out) override {
    auto zeros = ended_ ? begin_member(in) : 0;
    if (ended_) return {zeros, 0};
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    auto rest = in.subspan(zeros).first(std::min(most, in.size() - zeros));
    out = out.first(std::min(most, out.size()));
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
    zlib_.avail_in = static_cast<uInt>(rest.size());
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(out.size());
    auto result = inflate(&zlib_, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      ended_ = true;
    else if (result != Z_OK && result != Z_BUF_ERROR)
      refuse_compressed(name_, zlib_.msg ? zlib_.msg : zError(result));
    return {zeros + rest.size() - zlib_.avail_in, out.size() - zlib_.avail_out};
  }

 private:
  // Skips zeros after a member, and prepares for the next member if there is one.
  std::size_t begin_member(std::span<const std::byte> in) {
    auto zeros = static_cast<std::size_t>(
        std::ranges::find_if(in, [](std::byte b) { return b != std::byte{0}; }) - in.begin());
    if (zeros == in.size()) return zeros;
    if (in[zeros] != std::byte{0x1f})
      refuse_compressed(name_, "data after the end of a gzip member are not gzip");
    inflateReset(&zlib_);
    ended_ = false;
    return zeros;
  }

  std::string name_;
  z_stream zlib_{};
  bool ended_ = false;
};

// Decodes Zstandard frames (RFC 8878).
class zstd_decoder final : public decoder {
 public:
  zstd_decoder(std::string name, const io::decompress_options& options)
      : name_(std::move(name)), zstd_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (!zstd_) throw error(errc::failed, "decompress " + name_, "Zstandard cannot be started");
    auto window = std::bit_ceil(std::min<std::uint64_t>(options.max_window_bytes,
                                                        std::max(options.max_bytes, usual_window)));
    is_limited_by_bytes_ = window < options.max_window_bytes;
    ZSTD_DCtx_setParameter(zstd_.get(), ZSTD_d_windowLogMax, std::countr_zero(window));
  }

  bool may_end() const noexcept override { return ended_; }

  progress decode(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    auto left = ZSTD_decompressStream(zstd_.get(), &to, &from);
    if (ZSTD_isError(left)) refuse(left);
    if (from.pos > 0 || to.pos > 0) ended_ = left == 0;
    return {from.pos, to.pos};
  }

 private:
  [[noreturn]] void refuse(std::size_t result) const {
    if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
      throw error(errc::limit_exceeded, "decompress " + name_,
                  std::string("its frame refers back farther than ") +
                      (is_limited_by_bytes_ ? "max_bytes" : "max_window_bytes"));
    refuse_compressed(name_, ZSTD_getErrorName(result));
  }

  // The window that common compression levels use, whatever the size of the frame.
  static constexpr std::uint64_t usual_window = std::uint64_t{8} << 20;

  std::string name_;
  bool is_limited_by_bytes_ = false;
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> zstd_;
  bool ended_ = true;
};

std::unique_ptr<decoder> make_decoder(std::string_view begin, const std::string& name,
                                      const io::decompress_options& options) {
  if (begin.starts_with("\x1f\x8b")) return std::make_unique<gzip_decoder>(name);
  bool is_frame = begin.starts_with("\x28\xb5\x2f\xfd");
  bool is_skippable = begin.size() >= magic_bytes && (begin[0] & 0xf0) == 0x50 &&
                      begin.substr(1).starts_with("\x2a\x4d\x18");
  if (is_frame || is_skippable) return std::make_unique<zstd_decoder>(name, options);
  return nullptr;
}

}  // namespace lade::detail
