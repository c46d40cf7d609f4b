# log_mel.py RATE N_FFT HOP N_MELS F_MIN F_MAX POWER SCALE EQUAL_AREA LOG FLOOR DROP_LAST: reads f32
# samples from standard input and writes the spectrogram [n_mels, frames] as f32, by the formulas of
# torch.stft, torchaudio.functional.melscale_fbanks, librosa.filters.mel and Whisper, in f64.
import sys

import numpy as np

rate, n_fft, hop, n_mels = map(int, sys.argv[1:5])
f_min, f_max, power = map(float, sys.argv[5:8])
scale, equal_area, log = sys.argv[8], sys.argv[9] == "1", sys.argv[10]
floor, drop_last = float(sys.argv[11]), sys.argv[12] == "1"


def to_mel(hertz):
    if scale == "htk":
        return 2595 * np.log10(1 + hertz / 700)
    return np.where(hertz < 1000, hertz * 3 / 200,
                    15 + np.log(np.maximum(hertz, 1000) / 1000) / (np.log(6.4) / 27))


def to_hertz(mel):
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((np.maximum(mel, 15) - 15) * np.log(6.4) / 27))


samples = np.frombuffer(sys.stdin.buffer.read(), "<f4").astype(np.float64)
padded = np.pad(samples, n_fft // 2, mode="reflect")
window = np.hanning(n_fft + 1)[:-1]
frames = np.array([padded[i:i + n_fft] * window for i in range(0, len(samples) + 1, hop)])
powers = np.abs(np.fft.rfft(frames)).T ** power
if drop_last:
    powers = powers[:, :-1]

edges = to_hertz(np.linspace(to_mel(np.array(f_min)), to_mel(np.array(f_max)), n_mels + 2))
bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
up = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
down = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
filters = np.maximum(0, np.minimum(up, down))
if equal_area:
    filters *= (2 / (edges[2:] - edges[:-2]))[:, None]

mel = filters @ powers
if log == "natural":
    mel = np.log(np.maximum(mel, floor))
elif log != "none":
    mel = np.log10(np.maximum(mel, floor))
if log == "whisper":
    mel = (np.maximum(mel, mel.max() - 8) + 4) / 4
sys.stdout.buffer.write(mel.astype("<f4").tobytes())
