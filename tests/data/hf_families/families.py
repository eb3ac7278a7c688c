"""The small models that record.py makes: sizes that show what is special about each family."""
from transformers import (AutoModelForCausalLM, AutoModelForImageTextToText, CLIPConfig, CLIPModel, Cohere2Config, Ernie4_5Config,
                          Exaone4Config, Gemma3Config, Glm4Config, GlmConfig, GPTBigCodeConfig, GptOssConfig, Llama4Config, Llama4ForCausalLM,
                          Llama4TextConfig, Mamba2Config, MinistralConfig, Mistral3Config, ModernBertConfig, ModernBertModel,
                          Olmo3Config, OlmoeConfig, OPTConfig, Phi3Config, Qwen2MoeConfig, RwkvConfig, SeedOssConfig, SmolLM3Config,
                          Starcoder2Config)

COMMON = dict(vocab_size=48, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
              intermediate_size=48, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def causal(config, **more):
    return config, AutoModelForCausalLM.from_config, AutoModelForCausalLM.from_pretrained


def common(**more):
    return {k: v for k, v in (COMMON | more).items() if v is not None}


FAMILIES = {
    "smollm3": causal(SmolLM3Config(**common(num_hidden_layers=4))),
    "qwen2_moe": causal(Qwen2MoeConfig(**common(moe_intermediate_size=24, shared_expert_intermediate_size=40, num_experts=6,
                                                num_experts_per_tok=2, mlp_only_layers=[1]))),
    "opt": causal(OPTConfig(**common(num_key_value_heads=None, intermediate_size=None), ffn_dim=48, word_embed_proj_dim=32)),
    "starcoder2": causal(Starcoder2Config(**common(sliding_window=9))),
    "gpt_bigcode": causal(GPTBigCodeConfig(vocab_size=48, n_positions=64, n_embd=32, n_layer=2, n_head=4, n_inner=48)),
    "gpt_oss": causal(GptOssConfig(**common(head_dim=8, sliding_window=9, num_local_experts=6, num_experts_per_tok=2,
                                            swiglu_limit=1.0,
                                            rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=4.0,
                                                                 beta_fast=32.0, beta_slow=1.0, truncate=False,
                                                                 original_max_position_embeddings=16)))),
    "cohere2": causal(Cohere2Config(**common(num_hidden_layers=4, sliding_window=9), logit_scale=0.5)),
    "olmo3": causal(Olmo3Config(**common(num_hidden_layers=4, sliding_window=9))),
    "olmoe": causal(OlmoeConfig(**common(num_experts=6, num_experts_per_tok=2, intermediate_size=24))),
    "exaone4": causal(Exaone4Config(**common(num_hidden_layers=4, sliding_window=9, sliding_window_pattern=4))),
    "seed_oss": causal(SeedOssConfig(**common(head_dim=12))),
    "ministral": causal(MinistralConfig(**common(head_dim=12, sliding_window=9))),
    "phi4_mini": causal(Phi3Config(**common(hidden_size=64, original_max_position_embeddings=64, max_position_embeddings=128),
                                   rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                                                        short_factor=[1.0, 1.1, 1.2, 1.4, 1.6, 2.0],
                                                        long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0],
                                                        original_max_position_embeddings=64))),
    "ernie4_5": causal(Ernie4_5Config(**common(head_dim=12, use_bias=True))),
    "glm": causal(GlmConfig(**common(head_dim=8, attention_bias=True))),
    "glm4": causal(Glm4Config(**common(head_dim=8, attention_bias=True))),
    "llama4_text": (Llama4TextConfig(**common(num_hidden_layers=4, head_dim=8, intermediate_size=24, intermediate_size_mlp=40,
                                              num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=2,
                                              attention_chunk_size=16, floor_scale=8)),
                    Llama4ForCausalLM, Llama4ForCausalLM.from_pretrained),
    "mamba2": causal(Mamba2Config(vocab_size=48, hidden_size=32, num_hidden_layers=3, num_heads=8, head_dim=8, expand=2,
                                  state_size=6, n_groups=2, chunk_size=16, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    "rwkv": causal(RwkvConfig(vocab_size=48, hidden_size=32, num_hidden_layers=3,
                              intermediate_size=48, context_length=64)),
}

EYES = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=8)


def with_images(config):
    """Models that also see images; their texts alone are recorded."""
    return config, AutoModelForImageTextToText.from_config, AutoModelForImageTextToText.from_pretrained


def without_images(config):
    """The same; of a class whose call fails without an image."""
    config, make, load = with_images(config)
    return config, make, lambda folder, **options: load(folder, **options).language_model


FAMILIES |= {
    "llama4": without_images(Llama4Config(
        vision_config=EYES | dict(vision_output_dim=16, projector_input_dim=16, projector_output_dim=16, intermediate_size=64),
        text_config=common(num_hidden_layers=4, head_dim=8, intermediate_size=24, intermediate_size_mlp=40, num_local_experts=4,
                           num_experts_per_tok=1, interleave_moe_layer_step=2))),
    "gemma3": with_images(Gemma3Config(vision_config=EYES | dict(model_type="siglip_vision_model"), mm_tokens_per_image=4, image_token_index=47,
                                       text_config=common(head_dim=8, sliding_window=9, sliding_window_pattern=2,
                                                          num_hidden_layers=4))),
    "mistral3": with_images(Mistral3Config(vision_config=EYES | dict(model_type="pixtral", head_dim=8), image_token_index=47,
                                           text_config=common(model_type="mistral", head_dim=8))),
}

ENCODERS = {
    "modernbert": (ModernBertConfig(**common(num_hidden_layers=4, num_key_value_heads=None), local_attention=9,
                                    global_attn_every_n_layers=3),
                   ModernBertModel, ModernBertModel.from_pretrained),
}

TOWER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
IMAGES = {
    "clip": (CLIPConfig(projection_dim=24, vision_config=TOWER | dict(image_size=16, patch_size=8),
                        text_config=TOWER | dict(vocab_size=48, max_position_embeddings=20, bos_token_id=46, eos_token_id=47)),
             CLIPModel, CLIPModel.from_pretrained),
}


def rule_of(name, sizes, config):
    """Center and scale: logits have a standard deviation of about 3, and every part counts."""
    tied = getattr(config, "tie_word_embeddings", False)
    last = name.split(".")[-1]
    if last in ("A_log", "dt_bias"):
        return 0.0, 1.0
    if last in ("time_decay", "time_first"):
        return -0.5, 1.0
    if last.startswith("time_mix"):
        return 0.5, 0.5
    if last == "D":
        return 1.0, 0.5
    if last == "sinks":
        return 0.5, 1.0
    if "bias" in last:
        return 0.0, 0.25
    if last == "logit_scale":
        return 2.0, 0.5
    if len(sizes) == 1:
        return 1.0, 0.25
    if "lm_head" in name or "head.weight" == name or (tied and "embed" in name and "position" not in name):
        return 0.0, round(3 * (3 / sizes[-1]) ** 0.5, 4)
    if "embed" in name or "wte" in name or "wpe" in name:
        return 0.0, 1.0
    if "conv1d" in name:
        return 0.2, 0.6
    inputs = sizes[-2] if len(sizes) == 3 else sizes[-1]
    return 0.0, round((6 / inputs) ** 0.5, 4)
