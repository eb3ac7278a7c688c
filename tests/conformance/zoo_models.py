"""The models of zoo.py: public definitions, made small where they allow it. Those of 2024 and later stand in
zoo_recent.py and zoo_images.py.

An entry makes a module, its example inputs, and says which of their dimensions may grow with the batch and with the sequence.
Nothing is downloaded: weights are random.
"""

import itertools

import torch
from torch import nn

from zoo_parts import BATCH, KEY_VALUE, SMALL, SMALL_PAIR, VISION, VOCABULARY, Example, Model, build, images, text, tokens

# ---- torchvision


def torchvision_models():
    import torchvision
    from torchvision import models

    def classifier(name, size=64, **options):
        return lambda: Example(models.get_model(name, weights=None, num_classes=10, **options), images(size))

    def segmenter(name):
        return lambda: Example(models.get_model(name, weights=None, weights_backbone=None, num_classes=5), images(64))

    def video(name, frames=8, size=64):
        return lambda: Example(models.get_model(name, weights=None, num_classes=10), [torch.randn(BATCH, 3, frames, size, size)])

    def backbone(make):
        return lambda: Example(make(), images(64))

    def detector_head(name, size=96):
        """Backbone, pyramid and heads: all of a detector before it filters boxes."""

        def make():
            detector = models.get_model(name, weights=None, weights_backbone=None, num_classes=5)

            class Heads(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.backbone, self.head = detector.backbone, getattr(detector, "head", None) or detector.rpn.head

                def forward(self, x):
                    return self.head(list(self.backbone(x).values()))

            return Example(Heads(), images(size))

        return make

    def mvit():
        block = lambda heads, inputs, outputs, stride: models.video.mvit.MSBlockConfig(
            num_heads=heads, input_channels=inputs, output_channels=outputs, kernel_q=[3, 3, 3], kernel_kv=[3, 3, 3],
            stride_q=stride, stride_kv=[1, 2, 2],
        )
        return Example(
            models.video.MViT(
                (32, 32),
                4,
                [block(1, 16, 16, [1, 1, 1]), block(2, 16, 32, [1, 2, 2])],
                residual_pool=True,
                residual_with_cls_embed=False,
                rel_pos_embed=True,
                proj_after_attn=True,
                num_classes=10,
            ),
            [torch.randn(BATCH, 3, 4, 32, 32)],
        )

    def flow():
        return Example(models.optical_flow.raft_small(weights=None), [torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)])

    fpn = torchvision.models.detection.backbone_utils
    vit = lambda: Example(models.VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10), images(64))
    for name, size, options in [
        ("resnet18", 64, {}),
        ("mobilenet_v3_small", 64, {}),
        ("efficientnet_b0", 64, {}),
        ("alexnet", 64, {}),
        ("squeezenet1_1", 64, {}),
        ("densenet121", 64, {}),
        ("shufflenet_v2_x1_0", 64, {}),
        ("mobilenet_v2", 64, {}),
        ("mnasnet0_5", 64, {}),
        ("googlenet", 64, {"aux_logits": False, "init_weights": False}),
        ("inception_v3", 96, {"aux_logits": False, "init_weights": False}),
        ("resnet50", 64, {}),
        ("resnext50_32x4d", 64, {}),
        ("regnet_y_400mf", 64, {}),
        ("regnet_x_400mf", 64, {}),
        ("efficientnet_v2_s", 64, {}),
        ("convnext_tiny", 64, {}),
    ]:
        yield Model(name, "torchvision", "CNN", classifier(name, size, **options))
    yield Model(
        "vgg11_bn", "torchvision", "CNN",
        lambda: Example(models.VGG(models.vgg.make_layers(models.vgg.cfgs["A"], True), 10, False), images(32)),
    )
    yield Model("vit", "torchvision", "vision transformer", vit)
    for name in ("swin_t", "swin_v2_t"):
        yield Model(name, "torchvision", "vision transformer", classifier(name))
    yield Model(
        "maxvit", "torchvision", "vision transformer",
        lambda: Example(models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10), images(64)),
    )
    for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
        yield Model(name, "torchvision", "segmentation", segmenter(name))
    yield Model(
        "resnet18_fpn", "torchvision", "detection",
        backbone(lambda: fpn.resnet_fpn_backbone(backbone_name="resnet18", weights=None)),
    )
    yield Model(
        "mobilenet_fpn", "torchvision", "detection",
        backbone(lambda: fpn.mobilenet_backbone("mobilenet_v3_large", weights=None, fpn=True)),
    )
    for name in (
        "ssdlite320_mobilenet_v3_large",
        "ssd300_vgg16",
        "retinanet_resnet50_fpn",
        "fcos_resnet50_fpn",
        "fasterrcnn_mobilenet_v3_large_320_fpn",
    ):
        yield Model(
            name, "torchvision, without the filter of boxes", "detection",
            detector_head(name, 300 if name == "ssd300_vgg16" else 96),
        )
    yield Model("r3d_18", "torchvision", "video", video("r3d_18", size=32))
    yield Model("r2plus1d_18", "torchvision", "video", video("r2plus1d_18", size=32))
    yield Model("s3d", "torchvision", "video", video("s3d", 16, 224))
    yield Model("mvit_v2", "torchvision", "video", mvit)
    yield Model("swin3d_t", "torchvision", "video", video("swin3d_t", 4))
    yield Model("raft_small", "torchvision", "optical flow", flow)


# ---- timm

# name, image size (None: the definition's own), further options
TIMM_CNN = (
    """resnet18d:64 mobilenetv4_conv_small:64 mobileone_s0:64 repvgg_a0:64 ghostnet_100:64 convnextv2_atto:64 hrnet_w18_small:64
    dla34:64 mixnet_s:64 eca_nfnet_l0:64 resnest14d:64 skresnet18:64 res2net50_14w_8s:64 xception41:64 ese_vovnet19b_dw:64 cspresnet50:64
    cspdarknet53:64 darknet53:64 rexnet_100:64 dpn48b:64 selecsls42:64 nf_regnet_b0:64 fbnetv3_b:64 tinynet_e:64 lcnet_050:64
    hardcorenas_a:64 ghostnetv2_100:64 repghostnet_050:64 starnet_s1:64 inception_next_atto:64 repvit_m0_9:64 hgnetv2_b0:64
    regnetz_b16:64 halonet26t:256 lambda_resnet26t:128 botnet26t_256:256 bat_resnext26ts:256 gcresnet33ts:64 rdnet_tiny:64
    mambaout_femto:64 inception_v4:96 inception_resnet_v2:96 convmixer_768_32:64 resnetv2_50:64 legacy_seresnet18:64
    resnet50_gn:64 mobilenet_edgetpu_v2_xs:64 tf_efficientnet_b0:65 csatv2:128 convnext_atto:64 spnasnet_100:64 fasternet_t0:64 lcnetv2_small:64 cspnext_tiny:64
    cpubone_nano:64""".split()
)
TIMM_TRANSFORMERS = (
    """vit_tiny_patch16_224:64 mobilevit_xxs:64 swin_tiny_patch4_window7_224:None levit_128s:None poolformer_s12:64
    mixer_s32_224:None efficientformerv2_s0:None xcit_nano_12_p16_224:64 fastvit_t8:64 edgenext_xx_small:64 mobilevitv2_050:64
    deit_tiny_patch16_224:64 eva02_tiny_patch14_224:56 cait_xxs24_224:64 swinv2_cr_tiny_ns_224:None swinv2_tiny_window8_256:None
    twins_pcpvt_small:64 twins_svt_small:64 pvt_v2_b0:64 coat_tiny:64 coatnet_nano_rw_224:None crossvit_tiny_240:None convit_tiny:64
    tnt_s_patch16_224:64 pit_ti_224:64 gcvit_xxtiny:None davit_tiny:64 focalnet_tiny_srf:64 nest_tiny:None mvitv2_tiny:64
    gmlp_ti16_224:None resmlp_12_224:None sequencer2d_s:None volo_d1_224:None hiera_tiny_224:None nextvit_small:64 tiny_vit_5m_224:None
    efficientvit_b0:64 efficientvit_m0:None maxvit_pico_rw_256:None caformer_s18:64 visformer_tiny:None shvit_s1:64 swiftformer_xs:64
    vit_small_patch16_dinov3:64 mobilenetv4_hybrid_medium:64 efficientformer_l1:None beit_base_patch16_224:None
    samvit_base_patch16:None vitamin_small_224:None efficientvim_m1:None iformer_s:None lowformer_b0:64 hieradet_small:64 fastvit_mci0:64
    vit_little_patch16_reg4_gap_256:64 vit_betwixt_patch16_rope_reg4_gap_256:64 vit_so400m_patch14_siglip_gap_224:56
    vit_pe_core_tiny_patch16_384:64 naflexvit_base_patch16_par_gap:64 gemma4_vit_167m:96 qwen3_vit_88m:64""".split()
)
# of 12 layers two say as much
TIMM_OPTIONS = {
    "beit_base_patch16_224": {"depth": 2}, "samvit_base_patch16": {"depth": 2, "img_size": 128},
    "cait_xxs24_224": {"depth": 2}, "vit_small_patch16_dinov3": {"depth": 4},
    "vit_little_patch16_reg4_gap_256": {"depth": 2}, "vit_betwixt_patch16_rope_reg4_gap_256": {"depth": 2},
    "vit_so400m_patch14_siglip_gap_224": {"depth": 1}, "naflexvit_base_patch16_par_gap": {"depth": 2},
    "gemma4_vit_167m": {"depth": 2}, "qwen3_vit_88m": {"depth": 2},
}


def timm_models():
    import timm

    def make(name, size):
        def build():
            options = {"num_classes": 10, **TIMM_OPTIONS.get(name, {})}
            if size is None:
                model = timm.create_model(name, **options)
                return Example(model, images(options.get("img_size", model.default_cfg["input_size"][-1])))
            try:
                model = timm.create_model(name, img_size=size, **options)
            except TypeError:  # a CNN takes any
                model = timm.create_model(name, **options)
            return Example(model, images(size))

        return build

    for family, names in (("CNN", TIMM_CNN), ("vision transformer", TIMM_TRANSFORMERS)):
        for entry in names:
            name, size = entry.split(":")
            yield Model("timm/" + name, "timm", family, make(name, None if size == "None" else int(size)))


# ---- transformers

T5 = dict(
    d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, vocab_size=VOCABULARY, decoder_start_token_id=0
)
SPEECH = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16, 16),
    conv_stride=(5, 4, 4), conv_kernel=(10, 4, 4), num_feat_extract_layers=3, num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4, vocab_size=VOCABULARY,
)

ENCODERS = {
    "BertModel": {},
    "DistilBertModel": dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "RobertaModel": {},
    "AlbertModel": dict(embedding_size=16),
    "DebertaV2Model": dict(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    "ElectraModel": dict(embedding_size=16),
    "ModernBertModel": dict(local_attention=8),
    "MPNetModel": {},
    "FNetModel": {},
    "MobileBertModel": dict(embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16),
    "ConvBertModel": dict(embedding_size=32),
    "FunnelModel": dict(
        num_hidden_layers=None, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64, num_decoder_layers=1
    ),
    "RoFormerModel": dict(embedding_size=32),
    "XLNetModel": dict(max_position_embeddings=None, d_model=32, n_layer=2, n_head=4, d_inner=64),
    "SqueezeBertModel": dict(embedding_size=32),
    "DebertaModel": dict(relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "NystromformerModel": {},
    "EsmModel": dict(position_embedding_type="rotary"),
    "CanineModel": {},
    "LayoutLMModel": {},
    "BigBirdModel": dict(attention_type="original_full"),
    "LongformerModel": dict(attention_window=4),
    "RemBertModel": dict(input_embedding_size=16),
    "IBertModel": {},
    "SplinterModel": {},
    "XLMRobertaModel": {},
    "MegatronBertModel": {},
    "ErnieModel": {},
    "XLMModel": dict(emb_dim=32, n_layers=2, n_heads=4),
    "FlaubertModel": dict(emb_dim=32, n_layers=2, n_heads=4),
}
DECODERS = {
    "GPT2LMHeadModel": {},
    "LlamaForCausalLM": KEY_VALUE,
    "MambaForCausalLM": {},
    "Gemma2ForCausalLM": KEY_VALUE,
    "BloomForCausalLM": {},
    "GPTNeoXForCausalLM": {},
    "MixtralForCausalLM": dict(**KEY_VALUE, num_local_experts=4),
    "Qwen3ForCausalLM": KEY_VALUE,
    "OPTForCausalLM": dict(ffn_dim=64, word_embed_proj_dim=32),
    "GPTJForCausalLM": dict(rotary_dim=4),
    "GPTNeoForCausalLM": dict(attention_types=[[["global", "local"], 1]], window_size=8),
    "MistralForCausalLM": KEY_VALUE,
    "Qwen2ForCausalLM": dict(num_key_value_heads=2),
    "PhiForCausalLM": dict(num_key_value_heads=4),
    "Phi3ForCausalLM": dict(num_key_value_heads=2),
    "FalconForCausalLM": {},
    "MptForCausalLM": dict(d_model=32, n_heads=4, n_layers=2),
    "StableLmForCausalLM": dict(num_key_value_heads=2),
    "OlmoForCausalLM": dict(num_key_value_heads=2),
    "Olmo2ForCausalLM": dict(num_key_value_heads=2),
    "CohereForCausalLM": dict(num_key_value_heads=2),
    "GraniteForCausalLM": dict(num_key_value_heads=2),
    "Starcoder2ForCausalLM": dict(num_key_value_heads=2),
    "CodeGenForCausalLM": dict(rotary_dim=4),
    "BioGptForCausalLM": {},
    "XGLMForCausalLM": dict(d_model=32, ffn_dim=64, num_layers=2, attention_heads=4),
    "CTRLLMHeadModel": dict(dff=64),
    "GemmaForCausalLM": KEY_VALUE,
    "Gemma3ForCausalLM": KEY_VALUE,
    "Gemma3nForCausalLM": dict(
        **KEY_VALUE, intermediate_size=[64, 64], layer_types=["sliding_attention", "full_attention"], sliding_window=8,
        activation_sparsity_pattern=[0.95, 0.0], num_kv_shared_layers=0, hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=VOCABULARY, altup_num_inputs=2, laurel_rank=8,
    ),
    "RwkvForCausalLM": dict(attention_hidden_size=32),
    "Mamba2ForCausalLM": dict(head_dim=16, num_heads=4, n_groups=1, state_size=16, chunk_size=4),
    "PersimmonForCausalLM": {},
    "NemotronForCausalLM": dict(num_key_value_heads=2),
    "GlmForCausalLM": KEY_VALUE,
    "HeliumForCausalLM": KEY_VALUE,
    "SmolLM3ForCausalLM": dict(num_key_value_heads=2),
    "OlmoeForCausalLM": dict(num_key_value_heads=2, num_experts=4, num_experts_per_tok=2),
    "Qwen2MoeForCausalLM": dict(
        experts="batched_mm", num_key_value_heads=2, num_experts=4, moe_intermediate_size=32, shared_expert_intermediate_size=32
    ),
    "RecurrentGemmaForCausalLM": dict(num_key_value_heads=1, lru_width=32, attention_window_size=8, head_dim=8),
    "Lfm2ForCausalLM": dict(num_key_value_heads=2, layer_types=["conv", "full_attention"]),
    "GptOssForCausalLM": dict(**KEY_VALUE, num_local_experts=4, num_experts_per_tok=2, sliding_window=8),
    "DeepseekV3ForCausalLM": dict(
        num_key_value_heads=4, n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=32,
        first_k_dense_replace=1, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
    ),
    "OpenAIGPTLMHeadModel": {},
    "GPTBigCodeForCausalLM": {},
}
PAIRS = {
    "T5Model": T5,
    "BartModel": SMALL_PAIR,
    "MarianModel": SMALL_PAIR,
    "PegasusModel": SMALL_PAIR,
    "M2M100Model": SMALL_PAIR,
    "MBartModel": SMALL_PAIR,
    "BlenderbotModel": SMALL_PAIR,
    "MT5Model": T5,
    "UMT5Model": T5,
    "LongT5Model": dict(**T5, local_radius=3),
    "SwitchTransformersModel": dict(**T5, num_experts=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    "LEDModel": dict(**SMALL_PAIR, attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    "ProphetNetModel": dict(
        hidden_size=32, num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
        num_decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=VOCABULARY,
    ),
    "PLBartModel": SMALL_PAIR,
    "BigBirdPegasusModel": dict(**SMALL_PAIR, attention_type="original_full"),
}
NEED_MASKS = ("LongT5Model", "SwitchTransformersModel")
# name: config, shape of the input without the batch, name of the input
AUDIO = {
    "WhisperModel": (
        dict(**SMALL_PAIR, max_source_positions=32, max_target_positions=32, num_mel_bins=16),
        (16, 64),
        "input_features",
    ),
    "Wav2Vec2Model": (SPEECH, (1600,), "input_values"),
    "HubertModel": (SPEECH, (1600,), "input_values"),
    "ASTModel": (dict(VISION, num_mel_bins=32, max_length=64), (64, 32), "input_values"),
    "EncodecModel": (
        dict(num_filters=4, hidden_size=16, codebook_dim=16, codebook_size=32, upsampling_ratios=[4, 2]),
        (1, 640),
        "input_values",
    ),
    "WavLMModel": (SPEECH, (1600,), "input_values"),
    "Data2VecAudioModel": (SPEECH, (1600,), "input_values"),
    "UniSpeechModel": (SPEECH, (1600,), "input_values"),
    "SEWModel": (dict(SPEECH, squeeze_factor=2), (1600,), "input_values"),
    "Wav2Vec2ConformerModel": (SPEECH, (1600,), "input_values"),
    "Speech2TextModel": (
        dict(SMALL_PAIR, max_source_positions=64, max_target_positions=32, input_feat_per_channel=16, conv_channels=32),
        (64, 16),
        "input_features",
    ),
    "MoonshineModel": (
        dict(
            hidden_size=32, intermediate_size=64, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
            encoder_num_attention_heads=4, decoder_num_attention_heads=4, vocab_size=VOCABULARY, bos_token_id=1,
            eos_token_id=2, pad_token_id=0,
        ),
        (2000,),
        "input_values",
    ),
    "Wav2Vec2BertModel": (dict(SPEECH, feature_projection_input_dim=16), (40, 16), "input_features"),
    "MimiModel": (
        dict(
            SMALL, num_filters=4, codebook_dim=16, codebook_size=32, vector_quantization_hidden_dimension=16,
            upsampling_ratios=[4, 2], num_quantizers=4, head_dim=8, num_key_value_heads=4, upsample_groups=32,
        ),
        (1, 640),
        "input_values",
    ),
    "DacModel": (
        dict(
            encoder_hidden_size=8, decoder_hidden_size=64, downsampling_ratios=[2, 4], upsampling_ratios=[4, 2], n_codebooks=2,
            codebook_size=32,
        ),
        (1, 640),
        "input_values",
    ),
}
VISION_NAMES = {
    "ViTModel": ("vision transformer", VISION, 64),
    "SegformerForSemanticSegmentation": (
        "segmentation",
        dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=32), 64,
    ),
    "YolosForObjectDetection": ("detection", dict(VISION, image_size=[64, 64], num_detection_tokens=10), 64),
    "Dinov2Model": ("vision transformer", dict(VISION, patch_size=16), 64),
    "BeitModel": ("vision transformer", VISION, 64),
    "DeiTModel": ("vision transformer", VISION, 64),
    "SwinModel": ("vision transformer", dict(image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), 64),
    "DPTForDepthEstimation": (
        "segmentation",
        dict(
            VISION, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 16, 32, 32],
            fusion_hidden_size=16, is_hybrid=False,
        ),
        64,
    ),
    "CLIPVisionModel": ("vision transformer", VISION, 64),
    "SiglipVisionModel": ("vision transformer", VISION, 64),
    "CvtModel": ("vision transformer", dict(embed_dim=[16, 32, 64], num_heads=[1, 2, 4], depth=[1, 2, 3]), 64),
    "GLPNForDepthEstimation": (
        "segmentation",
        dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16), 64,
    ),
    "Swin2SRForImageSuperResolution": (
        "segmentation", dict(image_size=32, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), 32,
    ),
    "MobileViTForSemanticSegmentation": ("segmentation", dict(image_size=64), 64),
    "PvtModel": ("vision transformer", dict(image_size=64), 64),
    "Swinv2Model": ("vision transformer", dict(image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), 64),
    "RegNetModel": ("CNN", {}, 64),
    "LevitModel": ("vision transformer", dict(image_size=224), 224),
    "VitDetModel": ("detection", VISION, 64),
    "HieraModel": ("vision transformer", dict(image_size=[64, 64], embed_dim=16, depths=[1, 1, 1, 1]), 64),
}


def transformers_models():
    import transformers

    def pair(name, config):
        def make():
            names, inputs, grows = ["input_ids", "decoder_input_ids"], [tokens(), tokens(6)], [1, None]
            if name in NEED_MASKS:
                names, inputs = names + ["attention_mask", "decoder_attention_mask"], inputs + [
                    torch.ones_like(x) for x in inputs
                ]
                grows = grows * 2
            return build(name, config, names, inputs, grows)

        return make

    def audio(name, config, shape, input_name):
        def make():
            names, inputs = [input_name], [torch.randn(BATCH, *shape)]
            if name in ("WhisperModel", "Speech2TextModel", "MoonshineModel"):
                names, inputs = [*names, "decoder_input_ids"], [*inputs, tokens(6)]
            return build(name, config, names, inputs)

        return make

    def vision(name, config, size):
        return lambda: build(name, config, ["pixel_values"], images(size))

    def two_towers(name):
        def make():
            text, sight = dict(SMALL), dict(VISION)
            example = build(
                name,
                dict(text_config=text, vision_config=sight, projection_dim=16),
                ["input_ids", "pixel_values"],
                [tokens(), *images(64)],
            )
            return example

        return make

    def detr():
        backbone = dict(
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config=transformers.ResNetConfig(
                embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], out_features=["stage4"]
            ),
        )
        return build("DetrForObjectDetection", dict(SMALL_PAIR, num_queries=5, **backbone), ["pixel_values"], images(64))

    def real_time_detr(name):
        """A small backbone with three feature maps. Frozen statistics that nobody trained would make all boxes equal."""

        def make():
            widths = dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"])
            if name.startswith("DFine"):
                backbone = transformers.HGNetV2Config(
                    **widths, stem_channels=[3, 8, 8], stage_in_channels=[8, 8, 16, 16], stage_mid_channels=[8, 8, 8, 8],
                    stage_out_channels=[8, 16, 16, 32], stage_num_blocks=[1, 1, 1, 1], stage_numb_of_layers=[1, 1, 1, 1],
                )
            else:
                backbone = transformers.RTDetrResNetConfig(**widths, embedding_size=8, layer_type="basic")
            narrow = dict(
                d_model=32, encoder_hidden_dim=32, encoder_in_channels=[16, 16, 32], encoder_ffn_dim=64,
                encoder_attention_heads=4, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=64, decoder_layers=2,
                decoder_attention_heads=4, num_queries=10, freeze_backbone_batch_norms=False, initializer_range=0.2,
            )
            return build(name, dict(backbone_config=backbone, **narrow), ["pixel_values"], images(64))

        return make

    def series():
        return build(
            "PatchTSTForPrediction",
            dict(
                num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=16, num_attention_heads=2,
                num_hidden_layers=2, ffn_dim=32, prediction_length=8, loss="mse",
            ),
            ["past_values"],
            [torch.randn(BATCH, 32, 3)],
        )

    for name, config in ENCODERS.items():
        yield Model(name, "transformers", "text encoder", text(name, config, True))
    for name, config in DECODERS.items():
        yield Model(name, "transformers", "decoder", text(name, config, False))
    for name, config in PAIRS.items():
        yield Model(name, "transformers", "encoder-decoder", pair(name, config))
    for name, (config, shape, input_name) in AUDIO.items():
        yield Model(name, "transformers", "audio", audio(name, config, shape, input_name))
    for name, (family, config, size) in VISION_NAMES.items():
        yield Model(name, "transformers", family, vision(name, config, size))
    yield Model("DetrForObjectDetection", "transformers", "detection", detr)
    for name in ("RTDetrV2ForObjectDetection", "DFineForObjectDetection"):
        yield Model(name, "transformers", "detection", real_time_detr(name))
    for name in ("CLIPModel", "SiglipModel"):
        yield Model(name, "transformers", "image and text", two_towers(name))
    yield Model("PatchTSTForPrediction", "transformers", "time series", series)


def all_models():
    """Every model, one of each family in turn: whoever stops early has seen a variety."""
    import zoo_detectors
    import zoo_images
    import zoo_recent

    families = {}
    lists = (torchvision_models(), transformers_models(), timm_models(), zoo_recent.models(), zoo_images.models(), zoo_detectors.whole_detectors())
    for model in itertools.chain(*lists):
        families.setdefault(model.family, []).append(model)
    return [m for turn in itertools.zip_longest(*families.values()) for m in turn if m is not None]
