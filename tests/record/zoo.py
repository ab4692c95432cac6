"""One small random model of each architecture, and two inputs of the kind it takes.

An entry is a config class, its settings and a feed.
"""

from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf

from tests.record.feeds import (
    IMAGE,
    WORDS,
    Feed,
    film,
    image,
    image_and_noise,
    is_image,
    left_padded_text,
    long_text,
    ones,
    sound,
    tensor,
    tensor_to_text,
    text,
    text_and_image,
    text_to_text,
    text_with_image,
    text_with_packed_image,
)

Settings = dict[str, Any]


@dataclass(frozen=True)
class Animal:
    """How one model of the zoo is made and fed."""

    config: Any
    settings: Settings
    feed: Feed
    model: Any = None  # where the config's own model is not the one

    def build(self, implementation: str | None = None) -> Any:
        """The same weights at every call; large enough that attention is far from even."""
        torch.manual_seed(0)
        config = self.config(**self.settings)
        make = self.model._from_config if self.model else hf.AutoModel.from_config
        model = make(config, attn_implementation=implementation).float().eval()
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.15)
            elif "sink" in name:
                torch.nn.init.normal_(parameter, std=1.0)
        return model


# Settings that many share ------------------------------------------------------------------------

PLACES: Settings = {"vocab_size": WORDS, "max_position_embeddings": 64}
WIDTH: Settings = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
SPECIAL: Settings = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
ENCODER: Settings = PLACES | WIDTH
DECODER: Settings = ENCODER | SPECIAL | {"num_key_value_heads": 2}
NARROW: Settings = DECODER | {"head_dim": 8}
WINDOWED: Settings = NARROW | {"sliding_window": 4}
UNGROUPED: Settings = DECODER | {"num_key_value_heads": 4}
GPT: Settings = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
XLM: Settings = {"emb_dim": 32, "n_layers": 3, "n_heads": 4} | PLACES
EXPERTS: Settings = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT: Settings = UNGROUPED | {  # keys and values through a bottleneck, as DeepSeek has it
    "q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8,
    "v_head_dim": 6, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1,
}  # fmt: skip
MAMBA: Settings = {"mamba_d_state": 4, "mamba_dt_rank": 4, "use_mamba_kernels": False}
MAMBA2: Settings = {
    "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_n_groups": 1,
    "mamba_chunk_size": 8,
}  # fmt: skip
DELTA: Settings = {  # Qwen's linear attention in three of four layers
    "num_hidden_layers": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8,
}  # fmt: skip
T5: Settings = {
    "vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
SIDES: Settings = SPECIAL | {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "decoder_start_token_id": 1,
}  # fmt: skip
BART: Settings = SIDES | {"max_position_embeddings": 64}
SPEECH: Settings = WIDTH | {
    "vocab_size": WORDS, "conv_dim": [16, 16], "conv_kernel": [4, 4], "conv_stride": [4, 4],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
VISION: Settings = WIDTH | {"image_size": 32, "patch_size": 8}
STAGES: Settings = {
    "image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4],
    "window_size": 4,
}  # fmt: skip
PYRAMID: Settings = {
    "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [16, 32], "strides": [4, 2],
    "num_attention_heads": [2, 4], "mlp_ratios": [2, 2],
}  # fmt: skip
DETR: Settings = SIDES | {
    "backbone_config": {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16],
                        "depths": [1, 1], "out_features": ["stage2"]},
    "use_timm_backbone": False, "use_pretrained_backbone": False, "num_queries": 5,
    "backbone": None,
}  # fmt: skip
MULTI_ROTARY: Settings = {
    "rope_parameters": {
        "rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0,
    }
}  # fmt: skip
PACKED: Settings = {
    "image_token_id": IMAGE, "vision_start_token_id": 4, "vision_end_token_id": 5,
    "video_token_id": 8,
}  # fmt: skip
PACKED_VISION: Settings = {
    "depth": 2, "hidden_size": 32, "num_heads": 4, "patch_size": 4, "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}  # fmt: skip
IMAGE_TOKEN: Settings = {"image_token_id": IMAGE}


def as_part(kind: str, settings: Settings, **more: Any) -> Settings:
    """Settings of one half of a model made of two."""
    return settings | {"model_type": kind} | more


def plain(config: Any, settings: Settings, **more: Any) -> Animal:
    return Animal(config, settings | more, text)


def two_sided(config: Any, settings: Settings, **more: Any) -> Animal:
    return Animal(config, settings | more, text_to_text)


def seeing(config: Any, settings: Settings, **more: Any) -> Animal:
    return Animal(config, settings | more, image)


# The zoo -----------------------------------------------------------------------------------------

ENCODERS = {
    "BERT": plain(hf.BertConfig, ENCODER),
    "RoBERTa": plain(hf.RobertaConfig, ENCODER, pad_token_id=1),
    "RoBERTa-PreLayerNorm": plain(hf.RobertaPreLayerNormConfig, ENCODER, pad_token_id=1),
    "XLM-R": plain(hf.XLMRobertaConfig, ENCODER, pad_token_id=1),
    "XLM-R XL": plain(hf.XLMRobertaXLConfig, ENCODER, pad_token_id=1),
    "CamemBERT": plain(hf.CamembertConfig, ENCODER, pad_token_id=1),
    "Data2Vec text": plain(hf.Data2VecTextConfig, ENCODER, pad_token_id=1),
    "Megatron-BERT": plain(hf.MegatronBertConfig, ENCODER),
    "ERNIE": plain(hf.ErnieConfig, ENCODER),
    "RemBERT": plain(hf.RemBertConfig, ENCODER, input_embedding_size=16),
    "Splinter": plain(hf.SplinterConfig, ENCODER),
    "DistilBERT": plain(
        hf.DistilBertConfig, PLACES, dim=32, n_layers=3, n_heads=4, hidden_dim=48
    ),
    "ALBERT": plain(hf.AlbertConfig, ENCODER, embedding_size=16),
    "ELECTRA": plain(hf.ElectraConfig, ENCODER, embedding_size=16),
    "DeBERTa": plain(
        hf.DebertaConfig, ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"],
        max_relative_positions=16,
    ),
    "DeBERTa-v2": plain(
        hf.DebertaV2Config, ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"],
        max_relative_positions=16, position_buckets=8, share_att_key=True,
        norm_rel_ebd="layer_norm",
    ),
    "MPNet": plain(hf.MPNetConfig, ENCODER, pad_token_id=1),
    "ModernBERT": plain(
        hf.ModernBertConfig, ENCODER | SPECIAL, local_attention=4, cls_token_id=1, sep_token_id=2
    ),
    "EuroBERT": plain(hf.EuroBertConfig, DECODER),
    "ESM": plain(
        hf.EsmConfig, ENCODER, pad_token_id=1, mask_token_id=3, position_embedding_type="rotary"
    ),
    "RoFormer": plain(hf.RoFormerConfig, ENCODER, embedding_size=32),
    "MobileBERT": plain(
        hf.MobileBertConfig, ENCODER, embedding_size=32, true_hidden_size=32,
        intra_bottleneck_size=32,
    ),
    "ConvBERT": plain(hf.ConvBertConfig, ENCODER, embedding_size=32),
    "I-BERT": plain(hf.IBertConfig, ENCODER, pad_token_id=1),
    "Funnel": Animal(
        hf.FunnelConfig,
        {
            "vocab_size": WORDS, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48,
            "block_sizes": [1, 1], "num_decoder_layers": 1,
        },
        text,
        hf.FunnelModel,
    ),
    "LayoutLM": plain(hf.LayoutLMConfig, ENCODER),
    "NomicBERT": plain(hf.NomicBertConfig, ENCODER),
    "SqueezeBERT": plain(hf.SqueezeBertConfig, ENCODER, embedding_size=32),
    "XLNet": plain(
        hf.XLNetConfig, {"vocab_size": WORDS}, d_model=32, n_layer=3, n_head=4, d_inner=48
    ),
    "FlauBERT": plain(hf.FlaubertConfig, XLM),
    "XLM": plain(hf.XLMConfig, XLM),
    "Nyströmformer": Animal(
        hf.NystromformerConfig,
        ENCODER | {"segment_means_seq_len": 8, "num_landmarks": 4},
        long_text(8),
    ),
    "FNet": plain(hf.FNetConfig, ENCODER),
    "Longformer": plain(hf.LongformerConfig, ENCODER, attention_window=4, pad_token_id=1),
    "BigBird full": plain(hf.BigBirdConfig, ENCODER, attention_type="original_full"),
    "BigBird sparse": Animal(
        hf.BigBirdConfig,
        ENCODER | {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 2},
        long_text(64),
    ),
    "Reformer": Animal(
        hf.ReformerConfig,
        {
            "vocab_size": WORDS, "hidden_size": 32, "num_attention_heads": 2,
            "attention_head_size": 16, "attn_layers": ["local", "lsh"], "feed_forward_size": 48,
            "axial_pos_shape": [4, 8], "axial_pos_embds_dim": [16, 16],
            "max_position_embeddings": 32, "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8,
            "num_buckets": 4, "num_hashes": 1, "is_decoder": False,
        },
        long_text(32),
    ),
}  # fmt: skip

DECODERS = {
    "GPT-1": plain(hf.OpenAIGPTConfig, GPT),
    "GPT-2": plain(hf.GPT2Config, GPT),
    "GPT-2 upcast": plain(
        hf.GPT2Config, GPT, reorder_and_upcast_attn=True, scale_attn_by_inverse_layer_idx=True
    ),
    "GPT-Neo": plain(
        hf.GPTNeoConfig, PLACES, hidden_size=32, num_layers=2, num_heads=4, window_size=4,
        attention_types=[[["global", "local"], 1]],
    ),
    "GPT-NeoX": plain(hf.GPTNeoXConfig, ENCODER),
    "GPT-J": plain(hf.GPTJConfig, GPT, rotary_dim=4),
    "CodeGen": plain(hf.CodeGenConfig, GPT, rotary_dim=4),
    "GPT-BigCode": plain(hf.GPTBigCodeConfig, GPT),
    "OPT": plain(hf.OPTConfig, ENCODER, ffn_dim=48, word_embed_proj_dim=32),
    "BLOOM": plain(hf.BloomConfig, {"vocab_size": WORDS}, hidden_size=32, n_layer=3, n_head=4),
    "MPT": plain(
        hf.MptConfig, {"vocab_size": WORDS}, d_model=32, n_layers=3, n_heads=4, max_seq_len=64
    ),
    "Falcon": plain(hf.FalconConfig, ENCODER, alibi=False, multi_query=True),
    "Falcon with ALiBi": plain(hf.FalconConfig, ENCODER, alibi=True, multi_query=False),
    "Llama": plain(hf.LlamaConfig, DECODER),
    "Llama padded left": Animal(hf.LlamaConfig, DECODER, left_padded_text),
    "Llama 4": plain(
        hf.Llama4TextConfig, NARROW, num_local_experts=2, intermediate_size_mlp=48,
        attention_chunk_size=4, interleave_moe_layer_step=2, layer_types=None,
        no_rope_layers=[1, 1, 0],
    ),
    "Mistral": plain(hf.MistralConfig, DECODER, sliding_window=4),
    "Ministral": plain(hf.MinistralConfig, WINDOWED),
    "Mixtral": plain(hf.MixtralConfig, DECODER, num_local_experts=4, sliding_window=None),
    "Qwen2": plain(hf.Qwen2Config, DECODER),
    "Qwen3": plain(hf.Qwen3Config, NARROW),
    "Qwen3-MoE": plain(hf.Qwen3MoeConfig, NARROW | EXPERTS),
    "Gemma": plain(hf.GemmaConfig, NARROW),
    "Gemma 2": plain(hf.Gemma2Config, WINDOWED, attn_logit_softcapping=2.0),
    "Gemma 3": plain(hf.Gemma3TextConfig, WINDOWED),
    "Gemma 3n": plain(
        hf.Gemma3nTextConfig, WINDOWED, num_hidden_layers=4, num_kv_shared_layers=2,
        vocab_size_per_layer_input=WORDS, hidden_size_per_layer_input=8, laurel_rank=4,
        altup_num_inputs=2, intermediate_size=[48] * 4, activation_sparsity_pattern=[0.0] * 4,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "Gemma 4": plain(
        hf.Gemma4TextConfig, WINDOWED, global_head_dim=8, hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=WORDS, num_kv_shared_layers=0,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    ),
    "VaultGemma": plain(hf.VaultGemmaConfig, WINDOWED),
    "Phi": plain(hf.PhiConfig, DECODER, partial_rotary_factor=0.5),
    "Phi-3": plain(hf.Phi3Config, NARROW, original_max_position_embeddings=64),
    "Phi-MoE": plain(hf.PhimoeConfig, DECODER, num_local_experts=4, sliding_window=None),
    "StableLM": plain(hf.StableLmConfig, DECODER),
    "OLMo": plain(hf.OlmoConfig, DECODER),
    "OLMo 2": plain(hf.Olmo2Config, DECODER),
    "OLMo 3": plain(
        hf.Olmo3Config, DECODER, sliding_window=4,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    ),
    "OLMoE": plain(hf.OlmoeConfig, DECODER, num_experts=4, num_experts_per_tok=2),
    "Cohere": plain(hf.CohereConfig, DECODER),
    "Cohere 2": plain(hf.Cohere2Config, DECODER, sliding_window=4),
    "StarCoder2": plain(hf.Starcoder2Config, DECODER, sliding_window=4),
    "Granite": plain(hf.GraniteConfig, DECODER),
    "Granite-MoE": plain(
        hf.GraniteMoeConfig, DECODER, num_local_experts=4, num_experts_per_tok=2
    ),
    "GLM": plain(hf.GlmConfig, NARROW),
    "GLM-4": plain(hf.Glm4Config, NARROW),
    "GLM-4 MoE": plain(
        hf.Glm4MoeConfig, NARROW | EXPERTS, n_routed_experts=4, n_group=1, topk_group=1,
        first_k_dense_replace=1,
    ),
    "SmolLM3": plain(hf.SmolLM3Config, DECODER),
    "Nemotron": plain(hf.NemotronConfig, DECODER),
    "Persimmon": plain(hf.PersimmonConfig, ENCODER),
    "GPT-OSS": plain(hf.GptOssConfig, WINDOWED, num_local_experts=4),
    "EXAONE 4": plain(
        hf.Exaone4Config, WINDOWED, sliding_window_pattern="LLG",
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    ),
    "ERNIE 4.5": plain(hf.Ernie4_5Config, NARROW),
    "Helium": plain(hf.HeliumConfig, NARROW),
    "Arcee": plain(hf.ArceeConfig, NARROW),
    "Apertus": plain(hf.ApertusConfig, DECODER),
    "Seed-OSS": plain(hf.SeedOssConfig, NARROW),
    "Hunyuan": plain(hf.HunYuanDenseV1Config, NARROW),
    "MiniMax": plain(
        hf.MiniMaxConfig, NARROW, num_local_experts=2, block_size=8,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
    ),
    "DiffLlama": plain(hf.DiffLlamaConfig, NARROW),
    "BitNet": plain(hf.BitNetConfig, DECODER),
    "NanoChat": plain(hf.NanoChatConfig, DECODER),
    "ModernBERT decoder": plain(
        hf.ModernBertDecoderConfig, ENCODER | SPECIAL, local_attention=4, cls_token_id=1,
        sep_token_id=2,
    ),
    "DeepSeek-V2": plain(hf.DeepseekV2Config, LATENT, topk_method="greedy"),
    "DeepSeek-V3": plain(hf.DeepseekV3Config, LATENT),
    "DeepSeek-V3.2": plain(
        hf.DeepseekV32Config, LATENT, index_topk=4, index_n_heads=2, index_head_dim=8
    ),
    "MiniCPM3": plain(
        hf.MiniCPM3Config, UNGROUPED, q_lora_rank=16, kv_lora_rank=8, qk_rope_head_dim=4,
        qk_nope_head_dim=8, v_head_dim=8,
    ),
    "BioGPT": plain(hf.BioGptConfig, ENCODER),
    "XGLM": plain(
        hf.XGLMConfig, PLACES, d_model=32, num_layers=3, attention_heads=4, ffn_dim=48
    ),
    "CTRL": plain(hf.CTRLConfig, GPT, dff=48),
}  # fmt: skip

HYBRIDS = {
    "Jamba": plain(
        hf.JambaConfig, DECODER | MAMBA, attn_layer_period=2, attn_layer_offset=1,
        expert_layer_period=2, expert_layer_offset=1, num_experts=2,
    ),
    "Zamba": plain(
        hf.ZambaConfig, UNGROUPED | MAMBA, num_hidden_layers=5, n_mamba_heads=2,
        layers_block_type=["mamba", "mamba", "hybrid", "mamba", "hybrid"],
        attn_layer_period=2, attn_layer_offset=1, attention_head_dim=16,
    ),
    "Zamba2": plain(
        hf.Zamba2Config, UNGROUPED, num_hidden_layers=4, mamba_d_state=4, mamba_ngroups=1,
        n_mamba_heads=8, mamba_headdim=8, chunk_size=8, num_mem_blocks=1, use_mem_rope=True,
        layers_block_type=["mamba", "hybrid", "mamba", "hybrid"], attention_head_dim=16,
        attention_hidden_size=64,
    ),
    "Bamba": plain(hf.BambaConfig, DECODER | MAMBA2, attn_layer_indices=[1]),
    "Falcon-H1": plain(
        hf.FalconH1Config, NARROW | MAMBA2, mamba_d_ssm=32, mamba_n_heads=4
    ),
    "Granite-MoE hybrid": plain(
        hf.GraniteMoeHybridConfig, DECODER | MAMBA2, num_local_experts=2, num_experts_per_tok=1,
        shared_intermediate_size=16, layer_types=["mamba", "attention", "mamba"],
    ),
    "LFM2": plain(
        hf.Lfm2Config, DECODER, layer_types=["conv", "full_attention", "conv"],
        block_multiple_of=8,
    ),
    "Nemotron-H": plain(
        hf.NemotronHConfig, NARROW, num_hidden_layers=4, mamba_num_heads=8, mamba_head_dim=8,
        ssm_state_size=4, n_groups=1, chunk_size=8,
        layers_block_type=["mamba", "attention", "mlp", "attention"],
    ),
    "Qwen3-Next": plain(
        hf.Qwen3NextConfig, NARROW | EXPERTS | DELTA, shared_expert_intermediate_size=16
    ),
    "Qwen3.5": plain(hf.Qwen3_5TextConfig, NARROW | DELTA),
    "RecurrentGemma": plain(
        hf.RecurrentGemmaConfig, DECODER, lru_width=32, attention_window_size=4,
        num_key_value_heads=1,
    ),
    "Mamba": plain(
        hf.MambaConfig, {"vocab_size": WORDS}, hidden_size=32, num_hidden_layers=2, state_size=4
    ),
}  # fmt: skip

TWO_SIDED = {
    "T5": two_sided(hf.T5Config, T5),
    "mT5": two_sided(hf.MT5Config, T5),
    "UMT5": two_sided(hf.UMT5Config, T5),
    "LongT5": two_sided(hf.LongT5Config, T5, local_radius=4),
    "Switch": two_sided(
        hf.SwitchTransformersConfig, T5, num_experts=2, expert_capacity=64,
        num_decoder_layers=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1,
    ),
    "T5Gemma": two_sided(
        hf.T5GemmaConfig, {"vocab_size": WORDS},
        encoder=WINDOWED | {"num_hidden_layers": 2}, decoder=WINDOWED | {"num_hidden_layers": 2},
    ),
    "BART": two_sided(hf.BartConfig, BART),
    "mBART": two_sided(hf.MBartConfig, BART),
    "PLBART": two_sided(hf.PLBartConfig, BART),
    "MVP": two_sided(hf.MvpConfig, BART),
    "Marian": two_sided(hf.MarianConfig, BART),
    "Pegasus": two_sided(hf.PegasusConfig, BART),
    "Pegasus-X": two_sided(hf.PegasusXConfig, BART, block_size=4, num_global_tokens=2),
    "M2M-100": two_sided(hf.M2M100Config, BART),
    "NLLB-MoE": two_sided(
        hf.NllbMoeConfig, BART, num_experts=2, encoder_sparse_step=2, decoder_sparse_step=2
    ),
    "Blenderbot": two_sided(hf.BlenderbotConfig, BART),
    "Blenderbot small": two_sided(hf.BlenderbotSmallConfig, BART),
    "FSMT": two_sided(
        hf.FSMTConfig, BART, src_vocab_size=WORDS, tgt_vocab_size=WORDS, langs=["en", "de"]
    ),
    "BigBird-Pegasus": two_sided(hf.BigBirdPegasusConfig, BART, attention_type="original_full"),
    "ProphetNet": two_sided(
        hf.ProphetNetConfig, PLACES | SPECIAL, hidden_size=32, num_encoder_layers=2,
        num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, decoder_start_token_id=1,
    ),
    "LED": two_sided(
        hf.LEDConfig, SIDES, attention_window=[4, 4], max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
    ),
}  # fmt: skip

HEARING = {
    "Whisper": Animal(
        hf.WhisperConfig,
        SIDES | {"num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 20},
        tensor_to_text("input_features", 8, 20),
    ),
    "Moonshine": Animal(
        hf.MoonshineConfig,
        SPECIAL | {
            "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48,
            "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2,
            "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
            "decoder_start_token_id": 1, "max_position_embeddings": 64,
        },
        tensor_to_text("input_values", 2000),
    ),
    "Speech2Text": Animal(
        hf.Speech2TextConfig,
        SIDES | {"max_source_positions": 40, "max_target_positions": 20, "conv_channels": 16,
                 "input_feat_per_channel": 8},
        tensor_to_text("input_features", 20, 8),
    ),
    "Wav2Vec2": Animal(hf.Wav2Vec2Config, SPEECH, sound),
    "HuBERT": Animal(hf.HubertConfig, SPEECH, sound),
    "Data2Vec audio": Animal(hf.Data2VecAudioConfig, SPEECH | {"conv_pos_kernel_size": 3}, sound),
    "UniSpeech": Animal(hf.UniSpeechConfig, SPEECH, sound),
    "WavLM": Animal(hf.WavLMConfig, SPEECH, sound),
    "AST": Animal(
        hf.ASTConfig,
        WIDTH | {"patch_size": 4, "frequency_stride": 4, "time_stride": 4, "max_length": 16,
                 "num_mel_bins": 8},
        tensor("input_values", 16, 8),
    ),
}  # fmt: skip

SEEING = {
    "ViT": seeing(hf.ViTConfig, VISION),
    "DeiT": seeing(hf.DeiTConfig, VISION),
    "DINOv2": seeing(hf.Dinov2Config, VISION),
    "DINOv2 with registers": seeing(hf.Dinov2WithRegistersConfig, VISION),
    "DINOv3": seeing(hf.DINOv3ViTConfig, VISION),
    "ViT-MAE": Animal(hf.ViTMAEConfig, VISION, image_and_noise),
    "ViT-MSN": seeing(hf.ViTMSNConfig, VISION),
    "I-JEPA": seeing(hf.IJepaConfig, VISION),
    "YOLOS": seeing(hf.YolosConfig, VISION, image_size=[32, 32], num_detection_tokens=5),
    "BEiT": seeing(hf.BeitConfig, VISION, use_relative_position_bias=True),
    "Data2Vec vision": seeing(hf.Data2VecVisionConfig, VISION),
    "DPT": seeing(
        hf.DPTConfig, VISION, backbone_out_indices=[0, 1, 2], is_hybrid=False,
        neck_hidden_sizes=[8, 8, 8], reassemble_factors=[4, 2, 1],
    ),
    "Swin": seeing(hf.SwinConfig, STAGES),
    "Swin v2": seeing(hf.Swinv2Config, STAGES),
    "Donut": seeing(hf.DonutSwinConfig, STAGES),
    "SegFormer": seeing(
        hf.SegformerConfig, PYRAMID, sr_ratios=[2, 1], patch_sizes=[7, 3], decoder_hidden_size=16
    ),
    "GLPN": seeing(
        hf.GLPNConfig, PYRAMID, sr_ratios=[2, 1], patch_sizes=[7, 3], decoder_hidden_size=16
    ),
    "PVT": seeing(
        hf.PvtConfig, PYRAMID, image_size=32, sequence_reduction_ratios=[2, 1], patch_sizes=[4, 2]
    ),
    "Hiera": seeing(
        hf.HieraConfig, {"image_size": [32, 32]}, patch_size=[3, 3], patch_stride=[2, 2],
        patch_padding=[1, 1], embed_dim=8, depths=[1, 1], num_heads=[2, 4], query_stride=[2, 2],
        masked_unit_size=[4, 4], masked_unit_attention=[True, False], num_query_pool=1,
    ),
    "DETR": seeing(hf.DetrConfig, DETR),
    "TimeSformer": Animal(hf.TimesformerConfig, VISION | {"num_frames": 2}, film),
    "VideoMAE": Animal(hf.VideoMAEConfig, VISION | {"num_frames": 2, "tubelet_size": 2}, film),
    "ViViT": Animal(
        hf.VivitConfig, VISION | {"num_frames": 2, "tubelet_size": [2, 8, 8]}, film
    ),
}  # fmt: skip

SEEING_AND_READING = {
    "CLIP": Animal(
        hf.CLIPConfig,
        {
            "text_config": ENCODER | SPECIAL | {"projection_dim": 16},
            "vision_config": VISION | {"projection_dim": 16},
            "projection_dim": 16,
        },
        text_and_image,
    ),
    "CLIPSeg": Animal(
        hf.CLIPSegConfig,
        {
            "text_config": ENCODER | SPECIAL | {"projection_dim": 16},
            "vision_config": VISION | {"projection_dim": 16},
            "projection_dim": 16,
        },
        text_and_image,
    ),
    "SigLIP": Animal(
        hf.SiglipConfig,
        {"text_config": ENCODER | {"projection_size": 32}, "vision_config": VISION},
        text_and_image,
    ),
    "BLIP": Animal(
        hf.BlipConfig,
        {
            "text_config": ENCODER | {"encoder_hidden_size": 32},
            "vision_config": VISION,
            "projection_dim": 16,
        },
        text_and_image,
        hf.BlipModel,
    ),
    "ViLT": Animal(hf.ViltConfig, VISION | PLACES, text_and_image),
    "GIT": Animal(hf.GitConfig, ENCODER | {"vision_config": VISION}, text_and_image),
    "LLaVA": Animal(
        hf.LlavaConfig,
        {
            "text_config": as_part("llama", DECODER),
            "vision_config": as_part("clip_vision_model", VISION),
            "image_token_index": IMAGE,
            "vision_feature_layer": -2,
        },
        text_with_image(16, 3, 32, 32),
    ),
    "PaliGemma": Animal(
        hf.PaliGemmaConfig,
        IMAGE_TOKEN | {
            "text_config": as_part("gemma", NARROW),
            "vision_config": as_part("siglip_vision_model", VISION),
            "image_token_index": IMAGE,
            "projection_dim": 32,
            "hidden_size": 32,
        },
        text_with_image(16, 3, 32, 32, token_type_ids=torch.zeros_like),
    ),
    "Gemma 3 with pictures": Animal(
        hf.Gemma3Config,
        IMAGE_TOKEN | {
            "text_config": as_part("gemma3_text", WINDOWED),
            "vision_config": as_part("siglip_vision_model", VISION),
            "mm_tokens_per_image": 4,
        },
        text_with_image(4, 3, 32, 32, token_type_ids=is_image),
    ),
    "Idefics3": Animal(
        hf.Idefics3Config,
        IMAGE_TOKEN | {
            "text_config": as_part("llama", DECODER),
            "vision_config": VISION,
            "pad_token_id": 0,
            "scale_factor": 2,
        },
        text_with_image(4, 1, 3, 32, 32),
    ),
    "SmolVLM": Animal(
        hf.SmolVLMConfig,
        IMAGE_TOKEN | {
            "text_config": as_part("llama", DECODER),
            "vision_config": VISION,
            "pad_token_id": 0,
            "scale_factor": 2,
        },
        text_with_image(4, 1, 3, 32, 32),
    ),
    "Qwen2-VL": Animal(
        hf.Qwen2VLConfig,
        PACKED | {
            "text_config": DECODER | MULTI_ROTARY,
            "vision_config": PACKED_VISION | {"embed_dim": 32, "mlp_ratio": 2},
        },
        text_with_packed_image,
    ),
    "Qwen2.5-VL": Animal(
        hf.Qwen2_5_VLConfig,
        PACKED | {
            "text_config": DECODER | MULTI_ROTARY,
            "vision_config": PACKED_VISION | {
                "out_hidden_size": 32, "intermediate_size": 48, "window_size": 16,
                "fullatt_block_indexes": [1],
            },
        },
        text_with_packed_image,
    ),
    "Qwen3-VL": Animal(
        hf.Qwen3VLConfig,
        PACKED | {
            "text_config": NARROW | MULTI_ROTARY,
            "vision_config": PACKED_VISION | {
                "out_hidden_size": 32, "intermediate_size": 48, "num_position_embeddings": 16,
                "deepstack_visual_indexes": [0],
            },
        },
        text_with_packed_image,
    ),
    "Qwen3.5 with pictures": Animal(
        hf.Qwen3_5Config,
        PACKED | {
            "text_config": NARROW | DELTA | MULTI_ROTARY,
            "vision_config": PACKED_VISION | {
                "out_hidden_size": 32, "intermediate_size": 48, "num_position_embeddings": 16,
            },
        },
        text_with_packed_image,
    ),
    "BLIP-2": Animal(
        hf.Blip2Config,
        {
            "vision_config": VISION,
            "qformer_config": ENCODER | {
                "encoder_hidden_size": 32, "cross_attention_frequency": 2,
            },
            "text_config": as_part(
                "opt", ENCODER, num_hidden_layers=2, ffn_dim=48, word_embed_proj_dim=32
            ),
            "num_query_tokens": 4,
            "image_token_index": IMAGE,
        },
        text_with_image(4, 3, 32, 32),
        hf.Blip2ForConditionalGeneration,
    ),
    "Mllama": Animal(
        hf.MllamaConfig,
        {
            "text_config": DECODER | {
                "num_hidden_layers": 4, "cross_attention_layers": [1, 3],
                "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
            },
            "vision_config": {
                "hidden_size": 32, "num_hidden_layers": 2, "num_global_layers": 1,
                "attention_heads": 4, "image_size": 32, "patch_size": 8, "intermediate_size": 48,
                "vision_output_dim": 64, "intermediate_layers_indices": [1], "max_num_tiles": 1,
                "supported_aspect_ratios": [[1, 1]],
            },
            "image_token_index": IMAGE,
        },
        text_with_image(
            1, 1, 1, 3, 32, 32, aspect_ratio_ids=ones(1), aspect_ratio_mask=ones(1, 1)
        ),
    ),
    "ViT to GPT-2": Animal(
        hf.VisionEncoderDecoderConfig,
        {
            "encoder": as_part("vit", VISION),
            "decoder": as_part("gpt2", GPT, add_cross_attention=True, is_decoder=True),
            "decoder_start_token_id": 1,
        },
        tensor_to_text("pixel_values", 3, 32, 32),
        hf.VisionEncoderDecoderModel,
    ),
}  # fmt: skip

ZOO: dict[str, Animal] = (
    ENCODERS | DECODERS | HYBRIDS | TWO_SIDED | HEARING | SEEING | SEEING_AND_READING
)
