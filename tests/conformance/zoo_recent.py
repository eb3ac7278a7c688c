"""Definitions of 2024 to 2026 for zoo.py, made small: language, speech and series of numbers. Those with images stand in zoo_images.py."""

import torch

from zoo_parts import BATCH, KEY_VALUE, SMALL, VOCABULARY, Model, build, text, tokens

GROUPED = dict(num_key_value_heads=2)
MAMBA = dict(
    mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=4
)
LATENT = dict(kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)
ROUTED = dict(n_routed_experts=4, n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1)
LINEAR = dict(
    linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
    layer_types=["linear_attention", "full_attention"],
)
SLIDING = dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])

ENCODERS = {
    "EuroBertModel": GROUPED,
    "NomicBertModel": {},
    "JinaEmbeddingsV3Model": {},
}
DECODERS = {
    "Llama4ForCausalLM": dict(
        **KEY_VALUE, intermediate_size_mlp=64, num_local_experts=4, interleave_moe_layer_step=2, attention_chunk_size=8,
        no_rope_layer_interval=2,
    ),
    "DeepseekV2ForCausalLM": dict(**LATENT, **ROUTED, num_key_value_heads=4, head_dim=8, first_k_dense_replace=1),
    "Qwen3MoeForCausalLM": dict(**KEY_VALUE, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32),
    "Qwen3NextForCausalLM": dict(
        **KEY_VALUE, **LINEAR, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32
    ),
    "Qwen3_5ForCausalLM": dict(**KEY_VALUE, **LINEAR),
    "Olmo3ForCausalLM": dict(**GROUPED, **SLIDING),
    "GraniteMoeHybridForCausalLM": dict(
        **GROUPED, **MAMBA, layer_types=["linear_attention", "full_attention"], num_local_experts=4, num_experts_per_tok=2,
        shared_intermediate_size=32,
    ),
    "Glm4ForCausalLM": KEY_VALUE,
    "Glm4MoeForCausalLM": dict(**KEY_VALUE, **ROUTED, first_k_dense_replace=1),
    "Ernie4_5ForCausalLM": KEY_VALUE,
    "Ernie4_5_MoeForCausalLM": dict(
        **GROUPED, moe_intermediate_size=32, moe_k=2, moe_num_experts=4, moe_num_shared_experts=1, moe_layer_start_index=1,
        moe_layer_end_index=1,
    ),
    "MiniMaxForCausalLM": dict(**KEY_VALUE, num_local_experts=4, num_experts_per_tok=2, block_size=4),
    "MiniMaxM2ForCausalLM": dict(**KEY_VALUE, num_local_experts=4, num_experts_per_tok=2),
    "Lfm2MoeForCausalLM": dict(
        **GROUPED, layer_types=["conv", "full_attention"], num_dense_layers=1, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=32,
    ),
    "FalconH1ForCausalLM": dict(**KEY_VALUE, **MAMBA, mamba_d_ssm=64),
    "FalconMambaForCausalLM": dict(state_size=8, time_step_rank=4),
    "BambaForCausalLM": dict(**GROUPED, **MAMBA, attn_layer_indices=[1]),
    "JambaForCausalLM": dict(
        **GROUPED, attn_layer_period=2, attn_layer_offset=1, num_experts=4, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False
    ),
    "Zamba2ForCausalLM": dict(
        num_hidden_layers=3, layers_block_type=["linear_attention", "linear_attention", "hybrid"], n_mamba_heads=8,
        mamba_d_state=16, chunk_size=4, attention_hidden_size=64, attention_head_dim=16, mamba_headdim=8, use_mamba_kernels=False,
        num_key_value_heads=4, adapter_rank=8,
    ),
    "xLSTMForCausalLM": dict(embedding_dim=32, num_blocks=2, num_heads=2, chunk_size=4),
    "ModernBertDecoderForCausalLM": dict(local_attention=8, layer_types=["full_attention", "sliding_attention"]),
    "SeedOssForCausalLM": KEY_VALUE,
    "ApertusForCausalLM": GROUPED,
    "ArceeForCausalLM": KEY_VALUE,
    "Exaone4ForCausalLM": dict(**GROUPED, **SLIDING),
    "HunYuanDenseV1ForCausalLM": KEY_VALUE,
    "Dots1ForCausalLM": dict(**GROUPED, **ROUTED, first_k_dense_replace=1, layer_types=["full_attention"] * 2),
    "BitNetForCausalLM": GROUPED,
    "DogeForCausalLM": GROUPED,
    "FlexOlmoForCausalLM": dict(**GROUPED, num_experts=4, num_experts_per_tok=2),
    "Cohere2ForCausalLM": dict(**GROUPED, **SLIDING),
    "NemotronHForCausalLM": dict(
        **KEY_VALUE, num_hidden_layers=None, layers_block_type=["linear_attention", "moe", "full_attention", "mlp"],
        ssm_state_size=16, mamba_num_heads=8, mamba_head_dim=8, n_groups=2, chunk_size=4, n_routed_experts=4,
        moe_intermediate_size=32, moe_shared_expert_intermediate_size=32, use_mamba_kernels=False,
    ),
    "KimiLinearForCausalLM": dict(
        num_key_value_heads=4, kv_lora_rank=16, qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8, num_experts=4,
        num_experts_per_token=2, moe_intermediate_size=32, mlp_layer_types=["dense", "sparse"],
        layer_types=["linear_attention", "full_attention"], linear_head_dim=8, linear_num_heads=4, head_dim=8,
    ),
    "DiffLlamaForCausalLM": dict(**GROUPED, head_dim=8),
    "VaultGemmaForCausalLM": dict(**KEY_VALUE, **SLIDING),
    "NanoChatForCausalLM": GROUPED,
    "CwmForCausalLM": dict(**KEY_VALUE, **SLIDING),
    "MinistralForCausalLM": dict(**KEY_VALUE, **SLIDING),
    "Gemma4ForCausalLM": dict(
        **KEY_VALUE, **SLIDING, vocab_size_per_layer_input=VOCABULARY, hidden_size_per_layer_input=8, per_layer_config={},
    ),
    "LongcatFlashForCausalLM": dict(
        **LATENT, num_hidden_layers=None, num_layers=1, num_key_value_heads=4, head_dim=8, ffn_hidden_size=64, moe_topk=2,
        n_routed_experts=4, zero_expert_num=2, expert_ffn_hidden_size=32,
    ),
    "Phi4MultimodalForCausalLM": dict(
        **GROUPED,
        vision_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=28, crop_size=28),
        audio_config=dict(
            hidden_size=32, intermediate_size=64, num_blocks=1, num_attention_heads=4, ext_pw_out_channel=32, nemo_conv_channels=32,
            depthwise_separable_out_channel=32,
        ),
    ),
    "TrOCRForCausalLM": dict(d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64),
}

SOUND_CODEC = dict(
    num_filters=4, hidden_size=16, codebook_dim=16, codebook_size=32, upsampling_ratios=[4, 2], num_lstm_layers=1,
)
# name: config, inputs by name
SPEECH = {
    "ParakeetForCTC": lambda: (
        dict(
            vocab_size=VOCABULARY,
            encoder_config=dict(
                hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_mel_bins=16,
                subsampling_conv_channels=8, max_position_embeddings=64,
            ),
        ),
        dict(input_features=torch.randn(BATCH, 96, 16)),
    ),
    "VoxtralEncoder": lambda: (
        dict(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_mel_bins=16,
            max_source_positions=32,
        ),
        dict(input_features=torch.randn(BATCH, 16, 64)),
    ),
    "Qwen2AudioEncoder": lambda: (
        dict(
            d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=16, max_source_positions=32
        ),
        dict(input_features=torch.randn(BATCH, 16, 64)),
    ),
    "GraniteSpeechCTCEncoder": lambda: (
        dict(
            input_dim=16, num_layers=2, hidden_dim=32, num_heads=4, dim_head=8, output_dim=12, context_size=8, max_pos_emb=16
        ),
        dict(hidden_states=torch.randn(BATCH, 20, 16)),
    ),
    "MoonshineStreamingModel": lambda: (
        dict(
            SMALL, num_key_value_heads=4, head_dim=8,
            encoder_config=dict(
                hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                head_dim=8, sliding_windows=[[16, 4], [16, 0]],
            ),
        ),
        dict(input_values=torch.randn(BATCH, 3200), decoder_input_ids=tokens(6)),
    ),
    "DiaModel": lambda: (
        dict(
            delay_pattern=[0, 1, 2],
            encoder_config=dict(
                num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=4, head_dim=8,
                intermediate_size=64, vocab_size=VOCABULARY, max_position_embeddings=64,
            ),
            decoder_config=dict(
                num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2,
                head_dim=8, cross_num_attention_heads=4, cross_head_dim=8, cross_num_key_value_heads=4, cross_hidden_size=32,
                vocab_size=VOCABULARY, num_channels=3, max_position_embeddings=64,
            ),
        ),
        dict(input_ids=tokens(), decoder_input_ids=torch.randint(5, VOCABULARY, (BATCH, 6, 3))),
    ),
    "CsmBackboneModel": lambda: (
        dict(SMALL, **KEY_VALUE, num_codebooks=4, text_vocab_size=VOCABULARY),
        dict(input_ids=torch.randint(5, VOCABULARY, (BATCH, 6, 4))),
    ),
    "KyutaiSpeechToTextForConditionalGeneration": lambda: (
        dict(
            SMALL, num_key_value_heads=4, codebook_vocab_size=33, num_codebooks=4, sliding_window=16, ffn_dim=64, head_dim=8,
            audio_bos_token_id=32, audio_pad_token_id=150,
            codec_config=dict(
                num_filters=4, hidden_size=16, codebook_dim=16, codebook_size=32, num_hidden_layers=1, num_attention_heads=4,
                num_key_value_heads=4, head_dim=4, intermediate_size=32, upsampling_ratios=[4, 2], num_quantizers=4,
                vector_quantization_hidden_dimension=16, upsample_groups=16, model_type="mimi",
            ),
        ),
        dict(input_ids=torch.randint(5, 32, (BATCH, 8, 5))),
    ),
    "SpeechT5ForSpeechToText": lambda: (
        dict(
            hidden_size=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, decoder_layers=2, decoder_ffn_dim=64,
            decoder_attention_heads=4, vocab_size=VOCABULARY, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 4),
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
        ),
        dict(input_values=torch.randn(BATCH, 800), decoder_input_ids=tokens(6)),
    ),
    "UnivNetModel": lambda: (
        dict(
            model_in_channels=8, model_hidden_channels=8, num_mel_bins=16, resblock_kernel_sizes=[3, 3],
            resblock_stride_sizes=[4, 2], resblock_dilation_sizes=[[1, 3], [1, 3]], kernel_predictor_num_blocks=1,
            kernel_predictor_hidden_channels=8,
        ),
        dict(input_features=torch.randn(BATCH, 12, 16), noise_sequence=torch.randn(BATCH, 12, 8)),
    ),
    "ClapAudioModel": lambda: (
        dict(
            num_mel_bins=16, spec_size=64, hidden_size=32, patch_embeds_hidden_size=16, depths=[1, 1],
            num_attention_heads=[2, 2], window_size=4, projection_dim=16,
        ),
        dict(input_features=torch.randn(BATCH, 1, 64, 16)),
    ),
    "WavTokenizerModel": lambda: (
        dict(
            SOUND_CODEC, decoder_hidden_size=32, decoder_intermediate_size=64, decoder_num_layers=2, decoder_attention_num_groups=4
        ),
        dict(input_values=torch.randn(BATCH, 1, 640)),
    ),
    "Phi4MultimodalAudioModel": lambda: (
        dict(
            hidden_size=32, intermediate_size=64, num_blocks=2, num_attention_heads=4, ext_pw_out_channel=32,
            depthwise_separable_out_channel=32, nemo_conv_channels=32, input_size=16, nemo_final_size=2, kernel_size=3,
            bias_max_distance=16,
        ),
        dict(hidden_states=torch.randn(BATCH, 64, 16), mask=torch.ones(BATCH, 64, dtype=torch.bool)),
    ),
}


def speech(name, settings):
    def make():
        config, inputs = settings()
        return build(name, config, list(inputs), list(inputs.values()))

    return make


def pair_of_gemma():
    part = dict(SMALL, **KEY_VALUE, **SLIDING)
    return build(
        "T5GemmaModel", dict(encoder=part, decoder=part, vocab_size=VOCABULARY), ["input_ids", "decoder_input_ids"],
        [tokens(), tokens(6)], [1, None],
    )


def series(name):
    def make():
        if name == "PatchTSMixerForPrediction":
            config = dict(context_length=32, num_input_channels=3, prediction_length=8)
            return build(name, config, ["past_values"], [torch.randn(BATCH, 32, 3)])
        config = dict(
            patch_length=8, context_length=32, horizon_length=8, num_hidden_layers=2, hidden_size=32, intermediate_size=32,
            head_dim=8, num_attention_heads=4, num_key_value_heads=4, output_quantile_len=8,
        )
        names, inputs = ["past_values"], [torch.randn(BATCH, 32)]
        if name == "TimesFmModelForPrediction":
            names, inputs = [*names, "freq"], [*inputs, torch.zeros(BATCH, 1, dtype=torch.int32)]
        return build(name, config, names, inputs)

    return make


def perceiver():
    config = dict(num_latents=8, d_latents=32, d_model=32, num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4)
    return build("PerceiverModel", config, ["inputs"], [torch.randn(BATCH, 20, 32)], [1])


def models():
    for name, config in ENCODERS.items():
        yield Model(name, "transformers", "text encoder", text(name, config, True))
    for name, config in DECODERS.items():
        yield Model(name, "transformers", "decoder", text(name, config, False))
    yield Model("T5GemmaModel", "transformers", "encoder-decoder", pair_of_gemma)
    for name, settings in SPEECH.items():
        yield Model(name, "transformers", "audio", speech(name, settings))
    for name in ("TimesFmModelForPrediction", "TimesFm2_5ModelForPrediction", "PatchTSMixerForPrediction"):
        yield Model(name, "transformers", "time series", series(name))
    yield Model("PerceiverModel", "transformers", "text encoder", perceiver)
