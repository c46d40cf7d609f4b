#include "fixed_tensors.hpp"

#include <lade/error.hpp>

#include <utility>
#include <vector>

namespace lade::cuda::detail {

bool overlap(const tensor& a, const tensor& b) {
  return a.bytes() < b.bytes() + b.spec().bytes() && b.bytes() < a.bytes() + a.spec().bytes();
}

// The claim of a run. Claims form an intrusive list, which needs no destructor: batches may outlive
// static objects.
struct fixed_claim {
  fixed_claim(std::shared_ptr<fixed_tensors> owner, const std::string& by,
              std::span<const named_tensor> all)
      : content(std::move(owner)), stage(by), tensors(all.begin(), all.end()) {
    std::lock_guard lock(claims_mutex);
    for (auto* each = newest; each; each = each->before) require_apart(*each);
    before = std::exchange(newest, this);
  }
  fixed_claim(const fixed_claim&) = delete;
  ~fixed_claim() {
    std::lock_guard lock(claims_mutex);
    auto** at = &newest;
    while (*at != this) at = &(*at)->before;
    *at = before;
  }

  void require_apart(const fixed_claim& other) const {
    if (other.content == content) return;
    for (auto& mine : tensors)
      for (auto& its : other.tensors)
        if (overlap(mine.tensor(), its.tensor()))
          throw error(errc::invalid_argument, stage + " into " + mine.name(),
                      "a run or a batch of another stage, " + other.stage +
                          ", uses its memory as " + its.name());
  }

  const std::shared_ptr<fixed_tensors> content;
  const std::string stage;
  const std::vector<named_tensor> tensors;
  fixed_claim* before = nullptr;  // guarded by claims_mutex, like `newest`

  static inline constinit std::mutex claims_mutex;
  static inline constinit fixed_claim* newest = nullptr;
};

std::shared_ptr<fixed_tensors> claim_fixed_tensors(std::shared_ptr<fixed_tensors> content,
                                                   const std::string& stage,
                                                   std::span<const named_tensor> tensors) {
  if (!content) return nullptr;
  auto claim = std::make_shared<fixed_claim>(std::move(content), stage, tensors);
  auto* claimed = claim->content.get();
  return {std::move(claim), claimed};
}

}  // namespace lade::cuda::detail
