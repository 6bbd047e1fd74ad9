"""Widgets: controls → arrays → picture, one a file."""

from linformer_from_scratch.course.widgets.attention_explorer import AttentionExplorer
from linformer_from_scratch.course.widgets.block_explorer import BlockExplorer
from linformer_from_scratch.course.widgets.cost_model import CostModel
from linformer_from_scratch.course.widgets.decision_explorer import DecisionExplorer
from linformer_from_scratch.course.widgets.family_explorer import FamilyExplorer
from linformer_from_scratch.course.widgets.head_gallery import HeadGallery
from linformer_from_scratch.course.widgets.head_picker import HeadPicker
from linformer_from_scratch.course.widgets.jl_explorer import JLExplorer
from linformer_from_scratch.course.widgets.leak_explorer import LeakExplorer
from linformer_from_scratch.course.widgets.projection_explorer import ProjectionExplorer
from linformer_from_scratch.course.widgets.rank_slider import RankSlider
from linformer_from_scratch.course.widgets.sensor_explorer import SensorExplorer
from linformer_from_scratch.course.widgets.strip_explorer import StripExplorer
from linformer_from_scratch.course.widgets.training_explorer import TrainingExplorer
from linformer_from_scratch.course.widgets.wire_explorer import WireExplorer

__all__ = ["AttentionExplorer", "BlockExplorer", "CostModel", "DecisionExplorer", "FamilyExplorer"]
__all__ += ["HeadGallery", "HeadPicker", "JLExplorer", "LeakExplorer", "ProjectionExplorer", "RankSlider"]
__all__ += ["SensorExplorer", "StripExplorer", "TrainingExplorer", "WireExplorer"]
