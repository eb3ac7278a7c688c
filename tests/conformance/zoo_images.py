"""Definitions of 2024 to 2026 that read images, for zoo.py: alone, in pairs, in videos, or beside a text."""

import torch

from zoo_parts import BATCH, KEY_VALUE, SMALL, SMALL_PAIR, VISION, VOCABULARY, Model, build, images, tokens

GROUPED = dict(num_key_value_heads=2)
SLIDING = dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])

WINDOWED = dict(image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)
DINO = dict(
    hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=56, patch_size=14, reshape_hidden_states=False,
    out_indices=[1, 2, 3, 4],
)
NARROW_SAM = dict(
    prompt_encoder_config=dict(hidden_size=32, image_size=128, patch_size=16, mask_input_channels=8),
    mask_decoder_config=dict(hidden_size=32, mlp_dim=64, num_attention_heads=2, iou_head_hidden_dim=32),
)
HIERA = dict(
    model_type="sam2_hiera_det_model", hidden_size=16, image_size=[128, 128], blocks_per_stage=[1, 1, 2, 1], embed_dim_per_stage=[16, 32, 64, 128],
    num_attention_heads_per_stage=[1, 2, 2, 4], window_size_per_stage=[8, 4, 4, 4], global_attention_blocks=[3],
    window_positional_embedding_background_size=[4, 4],
)
SAM2_VISION = dict(
    backbone_config=HIERA, backbone_channel_list=[128, 64, 32, 16], backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
    fpn_hidden_size=32,
)
KEYPOINTS = dict(encoder_hidden_sizes=[8, 8, 16, 16], decoder_hidden_size=32, descriptor_decoder_dim=32, max_keypoints=16)
# name: family, config, size of the image
SIGHT = {
    "DINOv3ViTModel": ("vision transformer", dict(VISION, num_register_tokens=4, use_gated_mlp=True), 64),
    "DINOv3ConvNextModel": ("CNN", dict(hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 2, 1], image_size=64), 64),
    "Dinov2WithRegistersModel": ("vision transformer", VISION, 64),
    "Aimv2VisionModel": ("vision transformer", VISION, 64),
    "IJepaModel": ("vision transformer", VISION, 64),
    "PixtralVisionModel": ("vision transformer", dict(VISION, head_dim=8), 64),
    "DepthAnythingForDepthEstimation": (
        "depth",
        dict(
            backbone_config=dict(DINO, model_type="dinov2"), patch_size=14, reassemble_hidden_size=32,
            neck_hidden_sizes=[8, 16, 32, 32], fusion_hidden_size=16, head_hidden_size=8,
        ),
        56,
    ),
    "DepthProForDepthEstimation": (
        "depth",
        dict(
            fusion_hidden_size=16, patch_size=32, intermediate_hook_ids=[1, 0], intermediate_feature_dims=[16, 16],
            scaled_images_ratios=[0.25, 0.5, 1], scaled_images_overlap_ratios=[0.0, 0.5, 0.25],
            scaled_images_feature_dims=[32, 32, 16], use_fov_model=True, num_fov_head_layers=1,
            **{
                part + "_model_config": dict(
                    model_type="dinov2", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8
                )
                for part in ("image", "patch", "fov")
            },
        ),
        128,
    ),
    "VitPoseForPoseEstimation": (
        "pose",
        dict(
            backbone_config=dict(
                model_type="vitpose_backbone", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=[64, 64],
                out_indices=[2],
            ),
        ),
        64,
    ),
    "EomtForUniversalSegmentation": (
        "segmentation",
        dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, image_size=64, num_blocks=1, num_queries=5),
        64,
    ),
    "Sam2VisionModel": ("segmentation", SAM2_VISION, 128),
    "SuperPointForKeypointDetection": ("keypoints", KEYPOINTS, 64),
    "PPOCRV5MobileDetForObjectDetection": ("OCR", {}, 64),
    "PPOCRV5MobileRecForTextRecognition": ("OCR", {}, (96, 160)),
    "UVDocModel": (
        "OCR",
        dict(
            backbone_config=dict(model_type="uvdoc_backbone", out_features=[f"stage{k}" for k in range(1, 7)]),
        ),
        128,
    ),
    "DonutSwinModel": ("OCR", WINDOWED, 64),
    "TextNetModel": ("OCR", {}, 64),
    "RfDetrForObjectDetection": (
        "detection",
        dict(
            backbone_config=dict(
                model_type="rf_detr_dinov2", hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=64,
                patch_size=8, num_windows=2, window_block_indexes=[0, 1], out_indices=[2, 4],
            ),
            d_model=32, decoder_ffn_dim=64, decoder_layers=2, decoder_self_attention_heads=4, decoder_cross_attention_heads=4,
            num_queries=10, group_detr=1, c2f_num_blocks=1,
        ),
        64,
    ),
    "LwDetrForObjectDetection": (
        "detection",
        dict(
            backbone_config=dict(
                model_type="lw_detr_vit", hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=64,
                pretrain_image_size=64, num_windows=4, num_windows_side=2, window_block_indices=[0, 1], out_indices=[2, 4],
            ),
            projector_scale_factors=[1.0], d_model=32, decoder_ffn_dim=64, decoder_layers=2, decoder_self_attention_heads=4,
            decoder_cross_attention_heads=4, num_queries=10, group_detr=1, c2f_num_blocks=1,
        ),
        64,
    ),
}

LLAMA = dict(SMALL, **KEY_VALUE, model_type="llama")
QWEN2 = dict(SMALL, num_key_value_heads=2, model_type="qwen2")
IMAGE_TOKEN = 4
# name: config, number of the image's tokens, size of the image, further dimensions of the image
IMAGE_AND_TEXT = {
    "LlavaForConditionalGeneration": (
        dict(
            text_config=LLAMA, vision_config=dict(VISION, model_type="clip_vision_model", projection_dim=16),
            image_token_index=IMAGE_TOKEN,
        ),
        16, 64,
    ),
    "PaliGemmaForConditionalGeneration": (
        dict(
            text_config=dict(SMALL, **KEY_VALUE, model_type="gemma2", num_image_tokens=16),
            vision_config=dict(VISION, model_type="siglip_vision_model", vision_use_head=False), projection_dim=32,
            hidden_size=32, image_token_index=IMAGE_TOKEN,
        ),
        16, 64,
    ),
    "Gemma3ForConditionalGeneration": (
        dict(
            text_config=dict(SMALL, **KEY_VALUE, **SLIDING), vision_config=dict(VISION, vision_use_head=False),
            mm_tokens_per_image=4, image_token_index=IMAGE_TOKEN,
        ),
        4, 64,
    ),
    "InternVLForConditionalGeneration": (
        dict(
            text_config=QWEN2, vision_config=dict(VISION, image_size=[64, 64], patch_size=[16, 16]), image_token_id=IMAGE_TOKEN,
            image_seq_length=4,
        ),
        4, 64,
    ),
    "AyaVisionForConditionalGeneration": (
        dict(
            text_config=dict(SMALL, **GROUPED, **SLIDING, model_type="cohere2"), vision_config=dict(VISION, vision_use_head=False),
            image_token_index=IMAGE_TOKEN,
        ),
        4, 64,
    ),
    "GotOcr2ForConditionalGeneration": (
        dict(
            text_config=QWEN2,
            vision_config=dict(
                VISION, image_size=128, output_channels=16, window_size=4, global_attn_indexes=[1], mlp_dim=64
            ),
            image_token_index=IMAGE_TOKEN, image_seq_length=4,
        ),
        4, 128,
    ),
    "Idefics3ForConditionalGeneration": (
        dict(text_config=LLAMA, vision_config=dict(VISION), scale_factor=2, image_token_id=IMAGE_TOKEN), 4, 64,
    ),
    "SmolVLMForConditionalGeneration": (
        dict(text_config=LLAMA, vision_config=dict(VISION), scale_factor=2, image_token_id=IMAGE_TOKEN), 4, 64,
    ),
    "JanusForConditionalGeneration": (
        dict(
            text_config=LLAMA, vision_config=dict(VISION, mlp_ratio=2.0, projection_dim=32, num_image_tokens=16),
            vq_config=dict(
                embed_dim=8, num_embeddings=32, latent_channels=16, base_channels=32, channel_multiplier=[1, 1], num_res_blocks=1,
                num_patches=4, projection_dim=16, image_token_embed_dim=16,
            ),
            image_token_id=IMAGE_TOKEN,
        ),
        16, 64,
    ),
    "Ovis2ForConditionalGeneration": (
        dict(
            text_config=QWEN2, vision_config=dict(VISION, vocab_size=40), image_token_id=IMAGE_TOKEN, hidden_size=32,
            visual_indicator_token_ids=[110, 111, 112, 113, 114], vocab_size=VOCABULARY,
        ),
        16, 64,
    ),
    "AriaForConditionalGeneration": (
        dict(
            text_config=dict(SMALL, num_key_value_heads=2, head_dim=8, moe_num_experts=4, moe_topk=2, moe_num_shared_experts=1),
            vision_config=dict(VISION), projector_patch_to_query_dict={16: 4}, image_token_index=IMAGE_TOKEN,
        ),
        4, 64,
    ),
    "Mistral3ForConditionalGeneration": (
        dict(
            text_config=dict(SMALL, **KEY_VALUE, model_type="mistral"),
            vision_config=dict(VISION, head_dim=8, model_type="pixtral"), image_token_index=IMAGE_TOKEN, spatial_merge_size=2,
        ),
        4, 64,
    ),
    "FastVlmForConditionalGeneration": (
        dict(
            text_config=QWEN2, image_token_index=IMAGE_TOKEN,
            vision_config=dict(
                model_type="timm_wrapper", architecture="fastvit_t8", do_pooling=True, global_pool="avg", hidden_size=768,
                model_args={"inference_mode": True},
            ),
        ),
        4, 64,
    ),
    "Cohere2VisionForConditionalGeneration": (
        dict(
            text_config=dict(SMALL, **GROUPED, **SLIDING, model_type="cohere2"), vision_config=dict(VISION, vision_use_head=False),
            image_token_id=IMAGE_TOKEN, alignment_intermediate_size=64,
        ),
        4, 64,
    ),
    "DeepseekVLForConditionalGeneration": (
        dict(text_config=LLAMA, vision_config=dict(VISION, model_type="siglip_vision_model"), image_token_id=IMAGE_TOKEN), 16, 64,
    ),
}


def sight(name, config, size):
    return lambda: build(name, config, ["pixel_values"], images(size))


def image_and_text(name, config, places, size):
    """A text in which `places` tokens stand for the image."""

    def make():
        ids = torch.cat([tokens(2), torch.full((BATCH, places), IMAGE_TOKEN), tokens(6)], 1)
        pictures = images(size)
        if name in ("Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"):
            pictures = [p[:, None] for p in pictures]  # (batch, images of a text, channel, row, column)
        options = {"image_sizes": [(size, size)] * BATCH} if name == "Mistral3ForConditionalGeneration" else None
        return build(name, config, ["input_ids", "pixel_values"], [ids, *pictures], options=options)

    return make


def florence():
    config = dict(
        text_config=dict(SMALL_PAIR), image_token_id=IMAGE_TOKEN,
        vision_config=dict(
            depths=[1, 1], patch_size=[7, 3], patch_stride=[4, 2], patch_padding=[3, 1], patch_prenorm=[False, True],
            embed_dim=[16, 32], num_heads=[2, 4], num_groups=[2, 4], window_size=4, projection_dim=32,
        ),
    )
    ids = torch.cat([torch.full((BATCH, 65), IMAGE_TOKEN), tokens(6)], 1)
    config["text_config"]["max_position_embeddings"] = 128
    return build(
        "Florence2ForConditionalGeneration", config, ["input_ids", "pixel_values", "decoder_input_ids"],
        [ids, *images(64), tokens(6)],
    )


def reader_of_documents(name):
    """An encoder of images and a decoder of text, as in TrOCR, Donut and Nougat."""

    def make():
        import transformers

        decoder = dict(
            d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64, vocab_size=VOCABULARY,
            max_position_embeddings=64, is_decoder=True, add_cross_attention=True,
        )
        if name == "TrOCR":
            parts = transformers.ViTConfig(**VISION), transformers.TrOCRConfig(**decoder, cross_attention_hidden_size=32)
        else:
            parts = transformers.DonutSwinConfig(**WINDOWED), transformers.MBartConfig(**decoder)
        config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(*parts).to_dict()
        return build(
            "VisionEncoderDecoderModel", config, ["pixel_values", "decoder_input_ids"], [*images(64), tokens(6)]
        )

    return make


def segment_anything(name):
    def make():
        sight = SAM2_VISION
        if name == "SamModel":
            sight = dict(VISION, image_size=128, output_channels=32, window_size=4, global_attn_indexes=[1], num_pos_feats=16, mlp_dim=64)
        if name == "EdgeTamModel":
            mobile = dict(model_type="timm_wrapper", architecture="repvit_m0_9", num_classes=2, model_args=dict(features_only=True, out_indices=[0, 1, 2, 3]))
            sight = dict(SAM2_VISION, backbone_config=mobile, backbone_channel_list=[384, 192, 96, 48])
        return build(
            name, dict(vision_config=sight, **NARROW_SAM), ["pixel_values", "input_points", "input_labels"],
            [*images(128), 100 * torch.rand(BATCH, 1, 3, 2), torch.ones(BATCH, 1, 3, dtype=torch.int32)],
        )

    return make


def matcher(name):
    def make():
        config = dict(
            SuperGlueForKeypointMatching=dict(
                keypoint_detector_config=dict(KEYPOINTS, model_type="superpoint"), hidden_size=32,
                keypoint_encoder_sizes=[8, 16, 32], gnn_layers_types=["self", "cross"], sinkhorn_iterations=4,
            ),
            LightGlueForKeypointMatching=dict(
                keypoint_detector_config=dict(KEYPOINTS, model_type="superpoint"), descriptor_dim=32, num_hidden_layers=2,
                depth_confidence=-1.0, width_confidence=-1.0,
            ),
            EfficientLoFTRForKeypointMatching=dict(
                stage_num_blocks=[1, 1, 1, 1], out_features=[16, 16, 16, 32], hidden_size=32, num_attention_layers=1,
                num_attention_heads=8,
            ),
        )[name]
        return build(name, config, ["pixel_values"], [torch.rand(BATCH, 2, 3, 64, 64)])

    return make


def flexible_siglip():
    """Takes patches and the shape of each image."""
    config = dict(VISION, num_patches=16)
    inputs = [torch.randn(BATCH, 16, 768), torch.ones(BATCH, 16, dtype=torch.int64), torch.full((BATCH, 2), 4)]
    return build("Siglip2VisionModel", config, ["pixel_values", "pixel_attention_mask", "spatial_shapes"], inputs)


def video_predictor():
    config = dict(
        VISION, crop_size=32, frames_per_clip=4, mlp_ratio=2.0, pred_hidden_size=24, pred_num_attention_heads=2,
        pred_num_hidden_layers=1, pred_mlp_ratio=2.0,
    )
    return build("VJEPA2Model", config, ["pixel_values_videos"], [torch.randn(BATCH, 4, 3, 32, 32)], options={"skip_predictor": True})


def models():
    for name, (family, config, size) in SIGHT.items():
        yield Model(name, "transformers", family, sight(name, config, size))
    for name, settings in IMAGE_AND_TEXT.items():
        yield Model(name, "transformers", "image and text", image_and_text(name, *settings))
    yield Model("Florence2ForConditionalGeneration", "transformers", "image and text", florence)
    for name in ("TrOCR", "Donut"):
        yield Model(name, "transformers", "OCR", reader_of_documents(name))
    for name in ("SamModel", "Sam2Model", "EdgeTamModel"):
        yield Model(name, "transformers", "segmentation", segment_anything(name))
    for name in ("SuperGlueForKeypointMatching", "LightGlueForKeypointMatching", "EfficientLoFTRForKeypointMatching"):
        yield Model(name, "transformers", "keypoints", matcher(name))
    yield Model("Siglip2VisionModel", "transformers", "vision transformer", flexible_siglip)
    yield Model("VJEPA2Model", "transformers", "video", video_predictor)
