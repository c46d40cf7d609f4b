// Log-mel spectrograms, the input of speech models.

#pragma once

#include <lade/tensor.hpp>

#include <cstdint>
#include <memory>

namespace lade::media {

enum class mel_scale : std::uint8_t {
  slaney,  // linear below 1,000 Hz, logarithmic above (Auditory Toolbox; librosa's default)
  htk,     // 2595 log10(1 + f / 700) (The HTK Book; torchaudio's default)
};

// The function of a mel value x.
enum class mel_log : std::uint8_t {
  none,     // x
  natural,  // ln(max(x, floor))
  base10,   // log10(max(x, floor))
  whisper,  // l = log10(max(x, floor)), then (max(l, max(l) - 8) + 4) / 4 over all of the audio
};

struct log_mel_options {
  int sample_rate = 16'000;  // of the waveform, in samples per second
  int n_fft = 400;           // samples of a window; even, 2 to 32,768
  int hop = 160;             // samples from one window to the next
  int n_mels = 80;           // 1 to 1,024
  double f_min = 0;          // Hz
  double f_max = 0;          // Hz; 0: half of the sample rate
  double power = 2;          // of the magnitudes: 1 or 2
  mel_scale scale = mel_scale::htk;
  bool equal_area = false;  // triangles of equal area rather than of height 1 ("slaney" norm)
  mel_log log = mel_log::natural;
  float floor = 1e-10F;  // above 0 and finite, if `log` uses it
  bool drop_last_frame = false;
  bool frames_first =
      false;  // [frames, n_mels], as lade::pad requires, instead of [n_mels, frames]
};

// Returns the options of OpenAI's Whisper (whisper/audio.py, log_mel_spectrogram), whose input is
// 30 s of audio.
log_mel_options whisper_options(int n_mels = 80);

// Computes spectrograms. Frames are those of torch.stft: Hann windows (periodic), centred at
// multiples of `hop`, with the waveform reflected at its ends. Mel filters are those of
// torchaudio's melscale_fbanks and librosa's filters.mel. There are samples / hop + 1 frames, or
// one fewer (drop_last_frame). Values differ from the formulas by at most about 1e-5 of the
// loudest.
//
// Small and copyable. Any thread. Tensors are in memory of the calling stage.
class log_mel {
 public:
  // Throws error(invalid_argument) naming an invalid option.
  explicit log_mel(const log_mel_options& options = {});

  const log_mel_options& options() const noexcept { return options_; }

  // Returns the f32 spectrogram of a waveform: contiguous f32 of one channel, [samples], [1,
  // samples] or [samples, 1]. Throws error(invalid_argument) for other tensors, and for n_fft / 2
  // samples or fewer.
  tensor operator()(const tensor& waveform) const;

  // Returns the number of frames for a number of samples.
  std::int64_t frames(std::int64_t samples) const noexcept;

 private:
  struct plan;

  log_mel_options options_;
  std::shared_ptr<const plan> plan_;
};

}  // namespace lade::media
