# Bare-metal Cortex-M55 with newlib.
set(taper_cortex_m_flags "-mcpu=cortex-m55 -mfloat-abi=hard")
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m3.cmake)
