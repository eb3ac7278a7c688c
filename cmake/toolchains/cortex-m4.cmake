# Bare-metal Cortex-M4 with a floating-point unit for f32, and newlib.
set(taper_cortex_m_flags "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16")
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m3.cmake)
